#include "session/instance.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "ir/error.hpp"
#include "jit/compare_cached.hpp"
#include "jit/tuning/kernel_times.hpp"
#include "jit/tuning/tuned_runner.hpp"
#include "jit/warm/recorded_miss.hpp"
#include "runtime/arena_pool.hpp"
#include "runtime/host_device.hpp"
#include "runtime/io_buffers.hpp"
#include "runtime/spare_contexts.hpp"
#include "session/background_work.hpp"
#include "session/lazy_runner.hpp"
#include "session/ranged_kernels.hpp"

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

// For a GPU it is the session's device. For the host it is a second host device, because a candidate that never
// finishes occupies its threads.
std::shared_ptr<device> timing_device(device& of_session) {
  if (of_session.info().host_memory) return std::make_shared<host_device>(of_session.info().threads);
  return {std::shared_ptr<void>(), &of_session};
}

}  // namespace

void add_report(jit_report& to, jit_report other) {
  std::ranges::move(other.kernels, std::back_inserter(to.kernels));
  to.hits += other.hits, to.misses += other.misses;
  to.elapsed_ms += other.elapsed_ms;
}

// State that run() keeps on the device between runs. Its memory may go to other sizes afterwards (spare_contexts.hpp).
struct instance::runner {
  runner(const kiln::executable& of, std::unique_ptr<model_runner> how)
      : spares(of.plan().spares),
        block(spares ? spares->take_tensors(io_buffers::bytes_of(of), of.target())
                     : of.target().allocate(io_buffers::bytes_of(of))),
        tensors(of, block.data()),
        how(std::move(how)) {}
  ~runner() {
    how.reset();  // waits for its runs
    if (spares) spares->give_back(std::move(block));
  }
  runner(const runner&) = delete;
  std::shared_ptr<spare_contexts> spares;
  device_memory block;
  io_buffers tensors;
  std::unique_ptr<model_runner> how;
  std::size_t swaps = 0;
  bool graph_kept = false;
};

instance::instance(const session_resources& with, program bound, dim_bindings sizes, instance_kernels kernels)
    : with_(with),
      sizes_(std::move(sizes)),
      bound_(std::move(bound)),
      lazy_(kernels.ranged != nullptr, [this] { with_.report(session_events::kernels_swapped{sizes_, 1}); }) {
  auto begin = clock::now();
  with_.report(session_events::finalizing{});
  native_.emplace(finalize(kernels));
  finalize_ms_ = milliseconds_since(begin) + kernels.of_ranged.elapsed_ms;
  add_report(report_, std::move(kernels.of_ranged));
  with_.report(session_events::finalized{sizes_, report_, finalize_ms_});

  begin = clock::now();
  plan_options planning = with_.planning();
  planning.sizes = &sizes_;
  executable_ = load(*native_, with_.device(), planning);
  graphs_ = graph_memory(with_.records(), with_.device(), *native_, with_.options().graphs);
  load_ms_ = milliseconds_since(begin);
  with_.report(session_events::loaded{sizes_, executable_->plan().report, load_ms_});
}

instance::instance(const session_resources& with, const program& portable, dim_bindings sizes,
                   std::shared_ptr<const plan> planned, graph_memory graphs, jit_report report)
    : with_(with),
      sizes_(std::move(sizes)),
      portable_(&portable),
      report_(std::move(report)),
      finalize_ms_(report_.elapsed_ms),
      executable_(std::in_place, std::move(planned), with.device()),
      graphs_(std::move(graphs)),
      lazy_(true, [this] { with_.report(session_events::kernels_swapped{sizes_, 1}); }) {
  with_.report(session_events::finalizing{});
  with_.report(session_events::finalized{sizes_, report_, finalize_ms_});
  with_.report(session_events::loaded{sizes_, executable_->plan().report, load_ms_});
}

instance::~instance() = default;

const program& instance::bound() const {
  std::call_once(bound_once_, [this] {
    if (!bound_) bound_.emplace(portable_->bind(sizes_));
  });
  return *bound_;
}

program instance::finalize(const instance_kernels& kernels) {
  const session_options& options = with_.options();
  jit_options jit = with_.compiling_with_progress();
  jit.only_if_cached |= kernels.only_cached;
  // The kernels that serve only these sizes.
  std::optional<program> rest;
  if (kernels.ranged) kernels.ranged->use_in(rest.emplace(bound_->clone()), sizes_);
  const program& portable = rest ? *rest : *bound_;
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

void instance::specialize(const std::function<bool()>& cancelled) {
  jit_options jit = with_.compiling();
  if (with_.device().info().host_memory) jit.threads = 1;
  jit.progress = [&](std::size_t, std::size_t) {
    if (cancelled()) throw work_cancelled();
  };
  const program native = compile_bytecode(bound(), jit);
  if (cancelled()) return;
  lazy_.put_on_trial(load(native, with_.device(), with_.planning()));
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
  if (const auto& arenas = executable_->plan().arenas) {
    borrowed_block block(*arenas, io_buffers::bytes_of(*executable_));
    io_buffers tensors(*executable_, block.data());
    if (!shared_runner_) shared_runner_ = make_runner(with_.options().graphs);
    tensors.upload(inputs);
    shared_runner_->run(tensors.inputs(), tensors.outputs());
    return tensors.download();
  }
  if (!runner_) runner_ = std::make_unique<runner>(*executable_, make_runner(with_.options().graphs));
  runner& r = *runner_;
  r.tensors.upload(inputs);
  r.how->run(r.tensors.inputs(), r.tensors.outputs());
  if (with_.options().tuning == tuning_effort::off) {
    if (!lazy_.watched() && !r.graph_kept && !r.how->context().measuring()) {
      graphs_.keep(r.how->context());
      r.graph_kept = true;
    }
  } else if (const std::size_t swaps = tuning_in_background().progress().swaps; swaps != r.swaps) {
    r.swaps = swaps;
    with_.report(session_events::kernels_swapped{sizes_, swaps});
  }
  return r.tensors.download();
}

std::unique_ptr<model_runner> instance::make_runner(graph_policy policy) const {
  graph_options graphs = graphs_.options();
  graphs.policy = policy;
  if (with_.options().tuning != tuning_effort::off)
    return std::make_unique<tuned_runner>(tuning_in_background(), std::move(graphs));
  auto keep = [this](const execution_context& used) { graphs_.keep(used); };
  if (lazy_.watched()) return std::make_unique<lazy_runner>(lazy_, *executable_, std::move(graphs), keep);
  return kiln::make_runner(*executable_, graphs, keep);
}

std::vector<kernel_tuning> instance::tune(std::span<const literal> inputs, const tuner_options& options,
                                          double budget_ms) const {
  io_buffers tensors(*executable_);
  tensors.upload(inputs);
  std::vector<double> kernel_times = measure_kernel_times(*executable_, report_, tensors, timing_runs);
  const jit_options jit = tuning_jit(with_);
  tuner tuning(bound(), timing_device(with_.device()), jit, &with_.records(), options);
  std::size_t done = 0;
  return tuning.tune_all(kernel_times, budget_ms, [&](const kernel_tuning& kernel, std::size_t) {
    with_.report(session_events::tuned{kernel, ++done, kernel_times.size()});
  });
}

background_tuner& instance::tuning_in_background() const {
  std::lock_guard lock(tuner_mutex_);
  if (!tuner_) {
    background_options options{.budget_ms = with_.options().tuning_budget_ms, .plan = with_.planning()};
    options.tuning.effort = with_.options().tuning;
    tuner_ = std::make_unique<background_tuner>(bound(), native_->clone(), report_, *executable_,
                                                timing_device(with_.device()), tuning_jit(with_), &with_.records(),
                                                std::move(options));
  }
  return *tuner_;
}

void instance::finish_tuning() const {
  constexpr std::chrono::milliseconds glance{5};
  while (tuning_in_background().started() && !tuning_in_background().progress().done)
    std::this_thread::sleep_for(glance);
}

tuning_progress instance::tuning() const {
  std::lock_guard lock(tuner_mutex_);
  return tuner_ ? tuner_->progress() : tuning_progress{};
}

std::string instance::tuning_problem() const {
  std::lock_guard lock(tuner_mutex_);
  return tuner_ ? tuner_->problem() : std::string();
}

}  // namespace kiln
