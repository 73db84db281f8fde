#include "jit/tuning/background_tuner.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "jit/tuning/kernel_times.hpp"
#include "jit/tuning/replace_kernels.hpp"
#include "runtime/io_buffers.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

constexpr int timing_runs = 2, warm_runs = 1;  // each of them may delay a run by the length of one run
// The time between two rebuilds is at least rebuild_ratio times the duration of a rebuild and rebuild_runs times the
// duration of a run. A rebuild delays one or two runs, so fewer than one run in a hundred is delayed.
constexpr double rebuild_ratio = 10;
constexpr double rebuild_runs = 250;
constexpr std::chrono::milliseconds longest_first_run{1000};  // of a candidate; a run may have to wait for it
constexpr double turn_share_of_run = 0.25;

jit_options in_background(jit_options jit, const device& of) {
  jit.threads = of.info().host_memory ? 1 : std::max(1, static_cast<int>(std::thread::hardware_concurrency() / 2));
  return jit;
}

double seconds_since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }

// Sets the nice value of this thread; threads that it starts inherit it. Failure does no harm: the thread keeps its
// priority.
void lower_priority(int nice) { setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), nice); }

}  // namespace

background_tuner::background_tuner(const program& bound, program native, jit_report report, executable loaded,
                                   std::shared_ptr<device> timing, const jit_options& jit, tuning_records* records,
                                   background_options options)
    : bound_(bound),
      native_(std::move(native)),
      report_(std::move(report)),
      options_(std::move(options)),
      device_(loaded.target()),
      turns_(options_.share),
      tuner_(bound, std::move(timing), in_background(jit, device_), records,
             [&] {
               tuner_options tuning = options_.tuning;
               tuning.bench.turns = &turns_;
               tuning.run_limit = std::min(tuning.run_limit, longest_first_run);
               tuning.cancelled = [this, outer = tuning.cancelled] { return cancelled_ || outer(); };
               return tuning;
             }()),
      current_(std::move(loaded)) {}

background_tuner::~background_tuner() { finish(); }

void background_tuner::start(std::vector<literal> inputs, graph_options graphs) {
  if (started_.exchange(true)) return;
  inputs_ = std::move(inputs);
  graphs_ = std::move(graphs);
  thread_ = std::jthread([this] {
    lower_priority(options_.nice);
    auto begin = clock::now();
    try {
      tune();
    } catch (const std::exception& e) {
      std::lock_guard lock(mutex_);
      problem_ = e.what();
    }
    free_used();
    seconds_ = seconds_since(begin);
    done_ = true;
  });
}

void background_tuner::finish() {
  cancelled_ = true;
  if (thread_.joinable()) thread_.join();
}

tuning_progress background_tuner::progress() const {
  return {tuner_.groups().list.size(), tuned_, improved_, swaps_, seconds_, done_};
}

std::string background_tuner::problem() const {
  std::lock_guard lock(mutex_);
  return problem_;
}

std::vector<kernel_tuning> background_tuner::results() const {
  std::lock_guard lock(mutex_);
  return results_;
}

background_tuner::version background_tuner::take(const graph_options& graphs) {
  std::lock_guard lock(mutex_);
  if (newest_) ++swaps_;
  if (warmed_ && graphs.policy == graphs_.policy) {
    version taken{newest_, current_, std::move(*warmed_)};
    warmed_.reset();
    return taken;
  }
  return {newest_, current_, current_.make_context(graphs)};
}

void background_tuner::give_back(version&& used) {
  if (done_) return;  // the caller frees it
  std::lock_guard lock(mutex_);
  used_.push_back(std::move(used));
}

void background_tuner::free_used() {
  std::vector<version> freed;
  std::lock_guard lock(mutex_);
  freed.swap(used_);
}

void background_tuner::tune() {
  const executable first = current_;  // nobody else publishes
  std::vector<double> kernel_times;
  {
    io_buffers tensors(first);
    tensors.upload(inputs_);
    kernel_times = measure_kernel_times(first, report_, tensors, timing_runs, &turns_);
  }
  double run_ms = 0;
  for (double h : kernel_times) run_ms += h;
  tuner_.limit_samples(run_ms * turn_share_of_run);
  auto last = clock::now();
  double rebuild_seconds = 0.1;
  auto results = tuner_.tune_all(kernel_times, options_.budget_ms, [&](const kernel_tuning& t, std::size_t group) {
    free_used();
    if (t.outcome == kernel_tuning::state::tuned || t.outcome == kernel_tuning::state::known) ++tuned_;
    if (t.winner) {
      ++improved_;
      better_[group] = t.winner;
    }
    if (better_.empty() ||
        seconds_since(last) < std::max(rebuild_ratio * rebuild_seconds, rebuild_runs * run_ms / 1000))
      return;
    auto begin = clock::now();
    rebuild();
    last = clock::now();
    rebuild_seconds = seconds_since(begin);
  });
  {
    std::lock_guard lock(mutex_);
    results_ = std::move(results);
  }
  if (!better_.empty()) rebuild();
}

// Loads the program with the kernels found since the last rebuild, warms it and publishes it.
void background_tuner::rebuild() {
  native_ = replace_kernels(native_, bound_, tuner_.groups(), better_);
  better_.clear();
  executable exe = load(native_, device_, options_.plan);
  execution_context context = exe.make_context(graphs_);
  io_buffers tensors(exe);
  tensors.upload(inputs_);
  for (int i = 0; i < warm_runs || context.measuring(); ++i) {
    auto turn = turns_.take();
    exe.run(context, tensors.inputs(), tensors.outputs());
  }
  std::lock_guard lock(mutex_);
  current_ = std::move(exe);
  warmed_.reset();
  warmed_.emplace(std::move(context));
  ++newest_;
}

}  // namespace kiln
