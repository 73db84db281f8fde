#include "session/tuning.hpp"

#include "jit/tuning/heat.hpp"
#include "runtime/host_device.hpp"

namespace kiln {
namespace {

constexpr int heat_runs = 3;

jit_options compiling_of(const session_resources& with) {
  jit_options jit = with.compiling();
  jit.only_if_cached = false;
  return jit;
}

}  // namespace

std::shared_ptr<device> timing_device(const session_resources& with) {
  device& d = with.device();
  if (d.info().host_memory) return std::make_shared<host_device>(d.info().threads);
  return {std::shared_ptr<void>(), &d};
}

std::vector<kernel_tuning> tune_now(const session_resources& with, const instance& of, std::span<const literal> inputs,
                                    const tuner_options& options, double budget_ms) {
  io_buffers tensors(of.executable());
  tensors.upload(inputs);
  std::vector<double> heat = measure_heat(of.executable(), of.report(), tensors, heat_runs);
  const jit_options jit = compiling_of(with);
  tuner tuning(of.bound(), timing_device(with), jit, &with.records(), options);
  std::size_t done = 0;
  return tuning.tune_all(heat, budget_ms, [&](const kernel_tuning& kernel, std::size_t) {
    with.report(session_events::tuned{kernel, ++done, heat.size()});
  });
}

std::unique_ptr<tiered_model> tune_in_background(const session_resources& with, const instance& of,
                                                 std::vector<literal> inputs) {
  tiered_options tiers{.budget_ms = with.options().tuning_budget_ms, .plan = with.planning()};
  tiers.tuning.effort = with.options().tuning;
  tiers.graphs = of.graphs().options();
  return std::make_unique<tiered_model>(of.bound(), of.native().clone(), of.report(), of.executable(),
                                        timing_device(with), compiling_of(with), &with.records(), std::move(inputs),
                                        std::move(tiers));
}

}  // namespace kiln
