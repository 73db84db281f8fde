#include "jit/warm/warm.hpp"

#include <algorithm>
#include <mutex>

#include "jit/kernel_keys.hpp"
#include "jit/parallel.hpp"

namespace kiln {
namespace {

// A program that consists of one kernel.
program program_of(const warm_kernel& kernel) {
  program p;
  std::vector<value> inputs;
  for (std::size_t i = 0; i < kernel.key.inputs.size(); ++i)
    inputs.push_back(p.main().add_parameter("input" + std::to_string(i), kernel.key.inputs[i]));
  content_hash hash = content_hash::from_hex(kernel.key.payload);
  p.add_kernel(hash, kernel.payload);
  value first =
      p.main().add(code_object::make(kernel.symbol, code_format::mlir_bytecode, hash, "", kernel.key.outputs), inputs);
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kernel.key.outputs.size(); ++i) {
    outputs.push_back(value{first.producer, static_cast<std::uint32_t>(i)});
    names.push_back("output" + std::to_string(i));
  }
  p.main().set_outputs(std::move(outputs), std::move(names));
  return p;
}

warm_result warm_one(const warm_kernel& kernel, jit_options options) {
  try {
    jit_report report;
    compile_bytecode(program_of(kernel), options, &report);
    return {report.misses ? warm_state::compiled : warm_state::present, report.elapsed_ms, {}, {}};
  } catch (const error& e) {
    return {warm_state::failed, 0, e.kind(), e.what()};
  } catch (const std::exception& e) {
    return {warm_state::failed, 0, error_kind::internal, e.what()};
  }
}

}  // namespace

std::size_t warm_plan::add_target(jit_options target) {
  targets_.push_back(std::move(target));
  return targets_.size() - 1;
}

void warm_plan::add(warm_kernel kernel, std::size_t source) {
  auto [found, fresh] = known_.try_emplace(kernel.key.hash(), kernels_.size());
  if (fresh) kernels_.push_back(std::move(kernel));
  else ++duplicates_;
  auto& sources = kernels_[found->second].sources;
  if (sources.empty() || sources.back() != source) sources.push_back(source);
}

void warm_plan::add(const program& bound, std::size_t target, std::size_t source) {
  for (wanted_kernel& w : wanted_kernels(bound, targets_[target].target, targets_[target].driver)) {
    auto payload = bound.kernels().find(content_hash::from_hex(w.key.payload));
    if (payload == bound.kernels().end())
      throw error(error_kind::corrupted, "kernel '" + w.symbol + "' is not in the file");
    add(warm_kernel{w.symbol, std::move(w.key), target, payload->second, {}}, source);
  }
}

bool warm_plan::add(const recorded_miss& miss, std::shared_ptr<const std::vector<std::byte>> payload,
                    std::size_t source) {
  kernel_key key = make_kernel_key(miss.payload, miss.inputs, miss.outputs, {}, miss.target);
  key.driver = miss.driver;
  if (key.hash().hex() != miss.key) return false;
  // The driver exists only on the recording machine. That machine starts from the entry without a driver.
  key.driver.clear();
  const std::string description = key.target;
  auto same = std::ranges::find_if(targets_, [&](const jit_options& t) {
    return t.driver.empty() && make_kernel_key(miss.payload, {}, {}, {}, t.target).target == description;
  });
  std::size_t target =
      same != targets_.end() ? static_cast<std::size_t>(same - targets_.begin()) : add_target({.target = miss.target});
  add(warm_kernel{miss.symbol, std::move(key), target, std::move(payload), {}}, source);
  return true;
}

std::vector<warm_result> warm(const warm_plan& plan, const jit_options& options, std::stop_token stop) {
  std::vector<warm_result> results(plan.kernels().size());
  std::mutex mutex;
  std::size_t done = 0;
  parallel_for(results.size(), options.threads, [&](std::size_t i) {
    if (stop.stop_requested()) return;
    const warm_kernel& kernel = plan.kernels()[i];
    jit_options one = options;
    const jit_options& target = plan.targets()[kernel.target];
    one.target = target.target;
    one.driver = target.driver;
    one.second_driver = target.second_driver;
    one.assemble = target.assemble;
    one.threads = 1;
    one.progress = nullptr;
    results[i] = warm_one(kernel, one);
    std::lock_guard lock(mutex);
    ++done;
    if (options.progress) options.progress(done, results.size());
  });
  return results;
}

}  // namespace kiln
