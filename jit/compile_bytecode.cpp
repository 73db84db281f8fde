#include "jit/compile_bytecode.hpp"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>

#include "ir/container/container.hpp"
#include "ir/error.hpp"
#include "jit/code_digest.hpp"
#include "jit/kernel_compiler.hpp"
#include "jit/kernel_groups.hpp"
#include "jit/parallel.hpp"
#include "jit/tuning/tuning_records.hpp"
#include "jit/worker_pool.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

// One group that is looked up or compiled.
struct job {
  const kernel_group* group = nullptr;
  kernel_configuration configuration;
  std::string target;  // whose code `native` is
  native_bytes native;
  kernel_report report;
};

// If this version of the compiler rejects a tuned configuration, the default is used, which always works.
void compile_job(job& j, kernel_compiler& compiler, bool tuned, work_claim claim) {
  auto begin = clock::now();
  try {
    j.native = compiler.compile(*j.group, j.configuration);
  } catch (const error&) {
    if (!tuned) throw;
    j.configuration.clear();
    j.native = compiler.find(*j.group, {});
    if (!j.native) j.native = compiler.compile(*j.group, {});
  }
  compiler.keep(*j.group, j.configuration, j.native, std::move(claim));
  j.report.compile_ms = milliseconds_since(begin);
}

// Compiles the kernels that are not in the cache. Kernels that another process is compiling come last.
template <class Compile>
void make_missing(std::span<job* const> missing, const kernel_compiler& compiler, const jit_options& options,
                  Compile compile) {
  std::mutex mutex;
  std::size_t done = 0;
  std::vector<job*> left;
  auto attempt = [&](job& j, bool wait) {
    work_claim claim = compiler.claim(*j.group, j.configuration, wait);
    bool later = claim.busy() && !wait;
    if (!later) {
      j.native = compiler.find_made(*j.group, j.configuration);
      j.report.cached = j.native != nullptr;
      if (!j.native) compile(j, std::move(claim));
    }
    std::lock_guard lock(mutex);
    if (later) left.push_back(&j);
    else if (++done; options.progress) options.progress(done, missing.size());
  };
  parallel_for(missing.size(), options.threads, [&](std::size_t i) { attempt(*missing[i], false); });
  const std::vector<job*> awaited = std::move(left);
  parallel_for(awaited.size(), options.threads, [&](std::size_t i) { attempt(*awaited[i], true); });
}

}  // namespace

program compile_bytecode(const program& bound, const jit_options& options, jit_report* report) {
  auto begin = clock::now();
  program result = bound.clone();
  kernel_groups groups = group_code_objects(result, options.open);
  kernel_compiler compiler(bound, options);

  std::vector<job> jobs;
  std::vector<job*> missing;
  jobs.reserve(groups.list.size());
  for (const kernel_group& g : groups.list) {
    job& j = jobs.emplace_back(job{&g, compiler.configuration(g), options.target.name, nullptr, {}});
    j.native = compiler.find(g, j.configuration);
    if (!j.native && options.only_if_cached && !j.configuration.empty() && options.configuration.empty()) {
      // The kernel has a tuned configuration, but only the default's code is cached.
      if ((j.native = compiler.find(g, {}))) j.configuration.clear();
    }
    if (!j.native && options.configuration.empty() && (j.native = compiler.find_general(g))) {
      j.configuration.clear();
      j.target = options.family->name;
    }
    j.report = {g.portable.symbol, g.portable.payload, g.inputs, g.occurrences, j.native != nullptr, 0, {}, {}};
    if (j.native) continue;
    if (missing.empty() && options.workers && !options.only_if_cached)
      options.workers->start();  // in parallel with looking up the other kernels
    missing.push_back(&j);
  }
  if (options.only_if_cached && !missing.empty())
    throw error(
        error_kind::not_cached,
        fmt::format("{} of {} kernels: not in the cache (for example '{}'); run without --if-cached to compile them",
                    missing.size(), jobs.size(), missing[0]->report.symbol));

  // What takes longest should begin first. Payloads of products, convolutions and attention are larger than others.
  std::ranges::stable_sort(missing, std::ranges::greater(), [&](const job* j) {
    return bound.kernel(content_hash::from_hex(j->group->portable.payload)).size();
  });
  make_missing(missing, compiler, options, [&](job& j, work_claim claim) {
    compile_job(j, compiler, options.configuration.empty() && !j.configuration.empty(), std::move(claim));
  });

  std::vector<code_object> native;
  for (job& j : jobs) {
    content_hash hash = blake3(*j.native);
    result.add_kernel(hash, j.native);
    native.push_back(code_object::make(j.report.symbol, code_format::native, hash, j.target, j.group->outputs));
    j.report.native = hash.hex();
    j.report.configuration = std::move(j.configuration);
  }
  for (module& m : result.modules())
    for (instruction& i : m.instructions())
      if (auto found = groups.of.find(&i); found != groups.of.end()) m.set_operation(&i, native[found->second]);
  result.erase_unused_kernels();

  if (report) {
    report->hits = report->misses = 0;
    for (job& j : jobs) {
      ++(j.report.cached ? report->hits : report->misses);
      report->kernels.push_back(std::move(j.report));
    }
    report->elapsed_ms = milliseconds_since(begin);
  }
  return result;
}

std::vector<wanted_kernel> wanted_kernels(const program& bound, const target_row& target, const std::string& driver,
                                          const tuning_records* records) {
  std::vector<wanted_kernel> result;
  jit_options options{.target = target, .records = records, .driver = driver};
  kernel_compiler compiler(bound, options);
  for (const kernel_group& g : group_code_objects(bound).list)
    result.push_back({g.portable.symbol, compiler.key(g, compiler.configuration(g))});
  return result;
}

std::string compiler_version() {
  std::string code;
  for (const code_digest_row& row : code_digests())
    code += fmt::format(", {} {}", row.back_end, row.digest.substr(0, 12));
  return fmt::format("kiln {} (dialect {}{}, LLVM {})", kiln_version(), dialect_version(), code, LLVM_VERSION_STRING);
}

}  // namespace kiln
