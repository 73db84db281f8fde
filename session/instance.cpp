#include "session/instance.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "ir/error.hpp"
#include "jit/compare_cached.hpp"
#include "jit/tuning/kernel_times.hpp"
#include "jit/warm/recorded_miss.hpp"
#include "runtime/host_device.hpp"
#include "session/row_kernels.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

constexpr int timing_runs = 3;

// Tuning compiles even where runs may not.
jit_options tuning_jit(const session_resources& with) {
  jit_options jit = with.compiling();
  jit.only_if_cached = false;
  return jit;
}

void add_report(jit_report& to, jit_report other) {
  std::ranges::move(other.kernels, std::back_inserter(to.kernels));
  to.hits += other.hits, to.misses += other.misses;
  to.elapsed_ms += other.elapsed_ms;
}

// For a GPU it is the session's device. For the host it is a second host device, because a candidate that never
// finishes occupies its threads.
std::shared_ptr<device> timing_device(device& of_session) {
  if (of_session.info().host_memory) return std::make_shared<host_device>(of_session.info().threads);
  return {std::shared_ptr<void>(), &of_session};
}

}  // namespace

// What runs keep on the device between them. Either a context of the instance's executable, or a model that tunes
// itself and has contexts of its own.
struct instance::runner {
  io_buffers tensors;
  std::optional<execution_context> context;
  std::unique_ptr<tiered_model> tiers;
  std::size_t swaps = 0;
  bool graph_kept = false;
  explicit runner(const kiln::executable& of) : tensors(of) {}
};

instance::instance(const session_resources& with, program bound, dim_bindings sizes, const row_kernels* rows,
                   jit_report of_rows)
    : with_(with), sizes_(std::move(sizes)), bound_(std::move(bound)) {
  auto begin = clock::now();
  with_.report(session_events::finalizing{});
  native_ = finalize(rows);
  finalize_ms_ = milliseconds_since(begin) + of_rows.elapsed_ms;
  add_report(report_, std::move(of_rows));
  with_.report(session_events::finalized{sizes_, report_, finalize_ms_});

  begin = clock::now();
  executable_ = load(native_, with_.device(), with_.planning());
  graphs_ = graph_memory(with_.records(), with_.device(), native_, with_.options().graphs);
  load_ms_ = milliseconds_since(begin);
  with_.report(session_events::loaded{sizes_, executable_->plan().report, load_ms_});
}

instance::~instance() = default;

program instance::finalize(const row_kernels* rows) {
  const session_options& options = with_.options();
  const jit_options jit = with_.compiling_with_progress();
  std::optional<program> rest;  // of the kernels that have no form for any number of rows
  if (rows) rest = rows->use_in(bound_, sizes_);
  const program& portable = rest ? *rest : bound_;
  if (with_.cache() && options.verify_cache)
    for (const cache_mismatch& m : compare_with_cache(portable, jit, true).mismatches)
      with_.report(session_events::entry_replaced{m});
  const std::string& log = options.record_misses;
  try {
    program native = compile_bytecode(portable, jit, &report_);
    if (!log.empty()) append_misses(log, misses_of(portable, jit, report_, with_.name()));
    return native;
  } catch (const error& e) {
    if (!log.empty() && options.only_cached && e.kind() == error_kind::not_cached)
      append_misses(log, absent_kernels(portable, jit, with_.name()));
    throw;
  }
}

void instance::adopt(kiln::executable better) {
  if (&better.plan() != &executable_->plan()) graphs_.forget();
  executable_ = std::move(better);
}

std::vector<literal> instance::run(std::span<const literal> inputs) {
  std::vector<shape> types;
  for (const literal& l : inputs) types.push_back(l.type());
  executable_->check_inputs(types);
  std::lock_guard lock(run_mutex_);
  const bool first = !runner_;
  if (first) {
    runner_ = std::make_unique<runner>(*executable_);
    if (with_.options().tuning == tuning_effort::off)
      runner_->context.emplace(executable_->make_context(graphs_.options()));
    else runner_->tiers = tuned_in_background({inputs.begin(), inputs.end()});
  }
  runner& r = *runner_;
  r.tensors.upload(inputs);
  if (!r.tiers) {
    executable_->run(*r.context, r.tensors.inputs(), r.tensors.outputs());
    if (!r.graph_kept && !r.context->measuring()) {
      graphs_.keep(*r.context);
      r.graph_kept = true;
    }
  } else {
    r.tiers->run(r.tensors.inputs(), r.tensors.outputs());
    if (first) r.tiers->start();
    if (const std::size_t swaps = r.tiers->progress().swaps; swaps != r.swaps) {
      r.swaps = swaps;
      with_.report(session_events::kernels_swapped{sizes_, swaps});
    }
  }
  return r.tensors.download();
}

std::vector<kernel_tuning> instance::tune(std::span<const literal> inputs, const tuner_options& options,
                                          double budget_ms) const {
  io_buffers tensors(*executable_);
  tensors.upload(inputs);
  std::vector<double> heat = measure_kernel_times(*executable_, report_, tensors, timing_runs);
  const jit_options jit = tuning_jit(with_);
  tuner tuning(bound_, timing_device(with_.device()), jit, &with_.records(), options);
  std::size_t done = 0;
  return tuning.tune_all(heat, budget_ms, [&](const kernel_tuning& kernel, std::size_t) {
    with_.report(session_events::tuned{kernel, ++done, heat.size()});
  });
}

std::unique_ptr<tiered_model> instance::tuned_in_background(std::vector<literal> inputs) const {
  tiered_options tiers{.budget_ms = with_.options().tuning_budget_ms, .plan = with_.planning()};
  tiers.tuning.effort = with_.options().tuning;
  tiers.graphs = graphs_.options();
  return std::make_unique<tiered_model>(bound_, native_.clone(), report_, *executable_, timing_device(with_.device()),
                                        tuning_jit(with_), &with_.records(), std::move(inputs), std::move(tiers));
}

void instance::finish_tuning() {
  constexpr std::chrono::milliseconds glance{5};
  while (runner_ && runner_->tiers && !runner_->tiers->progress().done) std::this_thread::sleep_for(glance);
}

tiered_progress instance::tuning() const {
  std::lock_guard lock(run_mutex_);
  return runner_ && runner_->tiers ? runner_->tiers->progress() : tiered_progress{};
}

}  // namespace kiln
