#include "jit/compile_bytecode.hpp"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "ir/container/container.hpp"
#include "ir/error.hpp"
#include "jit/cache/kernel_cache.hpp"
#include "jit/compile_kernel.hpp"
#include "jit/compile_worker.hpp"
#include "jit/deadline.hpp"
#include "jit/kernel_keys.hpp"
#include "jit/parallel.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/kernel_bytecode.hpp"
#include "mlir_bridge/portable_kernel.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point begin) { return std::chrono::duration<double, std::milli>(clock::now() - begin).count(); }

std::vector<shape> input_types(const instruction& i) {
  std::vector<shape> types;
  for (value v : i.inputs()) types.push_back(v.type());
  return types;
}

// Code objects that become the same native kernel.
struct group {
  code_object portable;
  std::vector<shape> inputs, outputs;
  kernel_key key;
  kernel_report report;
  std::shared_ptr<const std::vector<std::byte>> native;  // serialized native_kernel
};

// Groups in the program's order, and which group each code object belongs to.
struct grouping {
  std::vector<group> groups;
  std::map<const instruction*, std::size_t> of;
};

grouping group_code_objects(const program& p, const target_row& target, const std::string& driver, const kernel_configuration& configuration) {
  grouping result;
  std::map<content_hash, std::size_t> known;  // by key
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions()) {
      const auto* c = i.op().get_if<code_object>();
      if (!c || c->format == code_format::native) continue;
      if (c->format != code_format::mlir_bytecode)
        throw error(error_kind::unsupported, fmt::format("code object '{}' is {}, for which this version has no finalizer", c->symbol, enum_name(c->format)));
      group g{*c, input_types(i), i.outputs(), {}, {}, nullptr};
      for (const shape& s : g.inputs)
        if (!s.is_static()) throw error(error_kind::usage, fmt::format("code object '{}' takes {}: give every open dimension a value first", c->symbol, s.str()));
      g.key = make_kernel_key(g.portable.payload, g.inputs, g.outputs, configuration, target);
      g.key.driver = driver;
      auto [found, fresh] = known.try_emplace(g.key.hash(), result.groups.size());
      if (fresh) {
        g.report = {c->symbol, c->payload, g.inputs, 0, false, 0};
        result.groups.push_back(std::move(g));
      }
      ++result.groups[found->second].report.occurrences;
      result.of[&i] = found->second;
    }
  return result;
}

// Parsed payloads, each parsed once however many shapes or candidates start from it.
class payload_parser {
 public:
  explicit payload_parser(const program& p) : program_(p) {}

  std::span<const std::byte> bytecode_of(const std::string& payload) const { return program_.kernel(content_hash::from_hex(payload)); }

  portable_kernel clone_of(const std::string& payload) {
    std::shared_ptr<entry> e;
    {
      std::lock_guard lock(mutex_);
      if (!context_) context_.emplace();
      auto& slot = entries_[payload];
      if (!slot) slot = std::make_shared<entry>();
      e = slot;
    }
    std::lock_guard lock(e->mutex);
    if (!e->kernel) e->kernel.emplace(portable_kernel::parse(*context_, bytecode_of(payload)));
    return e->kernel->clone();
  }

 private:
  struct entry {
    std::mutex mutex;
    std::optional<portable_kernel> kernel;
  };
  const program& program_;
  std::mutex mutex_;
  std::optional<compiler_context> context_;  // made on the first miss: a warm start needs none
  std::map<std::string, std::shared_ptr<entry>> entries_;
};

// A cached entry is used only if it reads back as a kernel; anything else is a miss.
std::shared_ptr<const std::vector<std::byte>> find_cached(kernel_cache* cache, const kernel_key& key) {
  if (!cache) return nullptr;
  auto bytes = cache->find(key);
  if (!bytes) return nullptr;
  try {
    deserialize_native_kernel(*bytes);
  } catch (const error&) {
    return nullptr;
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(*bytes));
}

// In this process under a deadline, or in a worker.
std::vector<std::byte> compile_here_or_in_worker(const group& g, payload_parser& parser, const jit_options& options) {
  if (!options.worker.empty()) {
    auto payload = parser.bytecode_of(g.portable.payload);
    return compile_in_worker({{payload.begin(), payload.end()}, g.inputs, g.outputs, options.target.name, options.configuration}, {.time = options.kernel_limit}, options.worker);
  }
  // The clone and everything else that the compile touches is its own, so that it can be left behind.
  auto kernel = std::make_shared<portable_kernel>(parser.clone_of(g.portable.payload));
  return call_with_deadline(options.kernel_limit, "compiling",
                            [kernel, inputs = g.inputs, outputs = g.outputs, target = options.target, configuration = options.configuration] { return compile_kernel(std::move(*kernel), inputs, outputs, target, configuration); });
}

void compile_group(group& g, payload_parser& parser, const jit_options& options) {
  auto begin = clock::now();
  // What no driver has compiled yet, from this machine or from one that has no such device.
  kernel_key before_driver = g.key;
  before_driver.driver.clear();
  try {
    auto known = options.assemble ? find_cached(options.cache, before_driver) : nullptr;
    auto bytes = known ? *known : compile_here_or_in_worker(g, parser, options);
    if (options.assemble) {
      native_kernel native = deserialize_native_kernel(bytes);
      native.object = options.assemble(native.object);
      bytes = serialize(native);
    }
    if (options.cache) options.cache->store(g.key, bytes);
    g.native = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  } catch (const error& e) {
    throw error(e.kind(), fmt::format("kernel '{}' ({}): {}", g.portable.symbol, g.portable.payload.substr(0, 16), e.what()));
  }
  g.report.compile_ms = milliseconds_since(begin);
}

}  // namespace

program compile_bytecode(const program& bound, const jit_options& options, jit_report* report) {
  auto begin = clock::now();
  program result = bound.clone();
  grouping work = group_code_objects(result, options.target, options.driver, options.configuration);

  std::vector<group*> missing;
  for (group& g : work.groups) {
    g.native = find_cached(options.cache, g.key);
    g.report.cached = g.native != nullptr;
    if (!g.native) missing.push_back(&g);
  }
  if (options.only_if_cached && !missing.empty())
    throw error(error_kind::absent, fmt::format("{} of {} kernels are not in the cache ('{}' is one): run without --if-cached to compile them", missing.size(), work.groups.size(), missing[0]->portable.symbol));

  if (!missing.empty()) {
    payload_parser parser(bound);
    std::mutex progress_mutex;
    std::size_t done = 0;
    parallel_for(missing.size(), options.threads, [&](std::size_t i) {
      compile_group(*missing[i], parser, options);
      std::lock_guard lock(progress_mutex);
      ++done;
      if (options.progress) options.progress(done, missing.size());
    });
  }

  for (group& g : work.groups) {
    content_hash hash = blake3(*g.native);
    result.add_kernel(hash, g.native);
    g.portable = code_object::make(g.portable.symbol, code_format::native, hash, options.target.name, g.outputs);
  }
  for (module& m : result.modules())
    for (instruction& i : m.instructions())
      if (auto found = work.of.find(&i); found != work.of.end()) m.set_operation(&i, work.groups[found->second].portable);
  result.erase_unused_kernels();

  if (report) {
    report->misses = missing.size();
    report->hits = work.groups.size() - missing.size();
    for (group& g : work.groups) report->kernels.push_back(std::move(g.report));
    report->elapsed_ms = milliseconds_since(begin);
  }
  return result;
}

std::vector<wanted_kernel> wanted_kernels(const program& bound, const target_row& target, const std::string& driver) {
  std::vector<wanted_kernel> result;
  for (const group& g : group_code_objects(bound, target, driver, {}).groups) result.push_back({g.portable.symbol, g.key});
  return result;
}

std::string compiler_version() {
  return fmt::format("kiln {} (dialect {}, cpu pipeline {}, gpu pipeline {}, LLVM {})", kiln_version(), dialect_version(), pipeline_version(target_family::cpu), pipeline_version(target_family::amdgpu), LLVM_VERSION_STRING);
}

}  // namespace kiln
