// A model that runs at once with the kernel configurations it has (tier 0) and gets better kernels while it runs (tier
// 1). A background thread tunes the kernels, the hottest first; new kernels are taken into use at the beginning of a
// run.
//
// run() must be called from one thread only. It waits for the tuner at most until the end of one sample (device_turns).
// It switches to a new version by exchanging a pointer: the background thread loads, allocates and warms the new
// version and frees the old one. An error in the background ends tuning but never a run; problem() returns it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "jit/tuning/device_turns.hpp"
#include "jit/tuning/tuner.hpp"
#include "runtime/executable.hpp"
#include "runtime/io_buffers.hpp"

namespace kiln {

struct tiered_options {
  tuner_options tuning = {};
  double budget_ms = 30000;
  double share = 0.2;  // of the device's time that timing may take while the model runs
  // Nice value of the background thread and of its compiler threads. There is one compiler thread if kernels run on the
  // host, otherwise half as many as processors.
  int nice = 10;
  plan_options plan = {};
  graph_options graphs = {};  // of the first version; later versions reuse its graph replay decision
};

struct tiered_progress {
  std::size_t kernels = 0, tuned = 0, improved = 0;
  std::size_t swaps = 0;  // how often run() switched to a new version
  double seconds = 0;
  bool done = false;
};

class tiered_model {
 public:
  // `native` is the result of compile_bytecode for `bound` with `jit`, `report` is its report, and `loaded` is the
  // loaded program. `inputs` are used to warm new versions, in the order of the plan's inputs. Everything that is
  // passed by reference must outlive this object. `timing` is the device that the tuner times on.
  tiered_model(const program& bound, program native, jit_report report, executable loaded,
               std::shared_ptr<device> timing, const jit_options& jit, tuning_records* records,
               std::vector<literal> inputs, tiered_options options);
  ~tiered_model();
  tiered_model(const tiered_model&) = delete;

  void run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs);

  void start();   // starts tuning in the background
  void finish();  // cancels tuning and waits for the thread
  tiered_progress progress() const;
  std::string problem() const;                 // the error that ended tuning; "" if there is none
  std::vector<kernel_tuning> results() const;  // after finish()
  // Whether it is still being measured if graph replay pays off.
  bool settling() const { return current_->context.report().mode == "measuring"; }
  const executable& current() const { return current_->exe; }

 private:
  struct version {
    executable exe;
    execution_context context;
    version(executable e, execution_context c) : exe(std::move(e)), context(std::move(c)) {}
  };
  void tune();
  void rebuild();

  const program& bound_;
  program native_;
  jit_report report_;
  tiered_options options_;
  device& device_;
  device_turns turns_;
  tuner tuner_;
  std::vector<literal> inputs_;
  std::optional<graph_decision> graph_;         // the first version's decision when tuning began
  std::unique_ptr<version> current_;            // owned by the thread that calls run()
  std::atomic<version*> next_ = nullptr;        // ready, but not yet taken by run()
  std::atomic<version*> retired_ = nullptr;     // no longer used by run(), to be deleted
  std::map<std::size_t, native_bytes> better_;  // improved kernels since the last rebuild, by group
  std::atomic<bool> cancelled_ = false;
  std::atomic<std::size_t> tuned_ = 0, improved_ = 0, swaps_ = 0;
  std::atomic<double> seconds_ = 0;
  std::atomic<bool> done_ = false;
  mutable std::mutex mutex_;  // guards problem_ and results_
  std::string problem_;
  std::vector<kernel_tuning> results_;
  std::jthread thread_;
};

}  // namespace kiln
