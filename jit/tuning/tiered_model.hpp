// A model that runs at once with the configurations it has (tier 0) and gets better kernels while it runs (tier 1):
// they are tuned in a background thread, the hottest first, and taken at the beginning of a run.
//
// run() belongs to one thread. It never waits for the tuner beyond the end of one sample (device_turns), and takes a
// new version by exchanging a pointer: loading, allocating and warming it is the background thread's work, and so is
// freeing the old one. What goes wrong in the background ends tuning, never a run; problem() says what it was.
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
  double share = 0.2;  // of the device's time that goes to timing while the model runs
  int nice = 10;  // of the background thread, and of those that compile for it: one where kernels run on the host, else
                  // half as many as there are processors
  plan_options plan = {};
  graph_options graphs = {};  // of the first version; later ones run the way that it found to be the fastest
};

struct tiered_progress {
  std::size_t kernels = 0, tuned = 0, improved = 0;
  std::size_t swaps = 0;  // versions that runs have taken
  double seconds = 0;
  bool done = false;
};

class tiered_model {
 public:
  // `bound` became `native` by compile_bytecode with `jit` and `report`; `loaded` is its executable. `inputs` are for
  // warming new versions, in the order of the plan's. Everything that is passed by reference outlives this object.
  // `timing` is the device for timing (tuner).
  tiered_model(const program& bound, program native, jit_report report, executable loaded,
               std::shared_ptr<device> timing, const jit_options& jit, tuning_records* records,
               std::vector<literal> inputs, tiered_options options);
  ~tiered_model();
  tiered_model(const tiered_model&) = delete;

  void run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs);

  void start();   // of tuning
  void finish();  // cancels what is left of it, and waits
  tiered_progress progress() const;
  std::string problem() const;                 // "" : none
  std::vector<kernel_tuning> results() const;  // after finish()
  bool settling() const {
    return current_->context.report().mode == "measuring";
  }  // whether graphs are worth it is still being found out
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
  std::optional<graph_decision> graph_;         // of the first version, when tuning began
  std::unique_ptr<version> current_;            // the running thread's
  std::atomic<version*> next_ = nullptr;        // made, and not taken yet
  std::atomic<version*> retired_ = nullptr;     // the running thread is done with it
  std::map<std::size_t, native_bytes> better_;  // by group, since the last rebuild
  std::atomic<bool> cancelled_ = false;
  std::atomic<std::size_t> tuned_ = 0, improved_ = 0, swaps_ = 0;
  std::atomic<double> seconds_ = 0;
  std::atomic<bool> done_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::string problem_;
  std::vector<kernel_tuning> results_;
  std::jthread thread_;
};

}  // namespace kiln
