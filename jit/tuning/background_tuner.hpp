// Tunes the kernels of a model in a separate thread while the model runs (tier 0), those with the most time per run
// first, and publishes versions of the model with better kernels (tier 1). A tuned_runner switches to the newest
// version at the beginning of a run.
//
// A run waits for the tuner for at most one sample (device_turns). The tuner's thread loads a new version, allocates
// its memory and warms it up; it also frees versions that runners have returned. An error in the background ends tuning
// but never a run; problem() returns it. Any thread may call.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "jit/tuning/device_turns.hpp"
#include "jit/tuning/tuner.hpp"
#include "runtime/executable.hpp"

namespace kiln {

struct background_options {
  tuner_options tuning = {};
  double budget_ms = 30000;
  // Fraction of the device's time that timing may take while the model runs.
  double share = 0.2;
  // Nice value of the background thread and of its compiler threads. There is one compiler thread if kernels run on the
  // host, otherwise half as many as processors.
  int nice = 10;
  plan_options plan = {};
};

struct tuning_progress {
  std::size_t kernels = 0, tuned = 0, improved = 0;
  // How often a runner switched to a new version.
  std::size_t swaps = 0;
  double seconds = 0;
  bool done = false;
};

class background_tuner {
 public:
  struct version {
    // 0 for the version that was loaded first.
    std::size_t number;
    executable exe;
    execution_context context;
  };

  // `native` is the result of compile_bytecode for `bound` with `jit`, `report` is its report, and `loaded` is the
  // loaded program. Everything that is passed by reference must outlive this object. `timing` is the device that the
  // tuner times on.
  background_tuner(const program& bound, program native, jit_report report, executable loaded,
                   std::shared_ptr<device> timing, const jit_options& jit, tuning_records* records,
                   background_options options);
  ~background_tuner();
  background_tuner(const background_tuner&) = delete;

  // Starts tuning if it has not been started. New versions are warmed up with `inputs`, in the order of the plan's
  // inputs, and with the replay policy of `graphs`; they reuse its decision.
  void start(std::vector<literal> inputs, graph_options graphs);
  bool started() const { return started_; }
  void finish();  // cancels tuning and waits for the thread
  tuning_progress progress() const;
  std::string problem() const;                 // the error that ended tuning; "" if there is none
  std::vector<kernel_tuning> results() const;  // after finish()

  // For runners: the number of the newest version; the newest version with a context for this replay policy; returning
  // a version that is no longer run. Runs hold turns().
  std::size_t newest() const { return newest_; }
  version take(const graph_options& graphs);
  void give_back(version&& used);
  device_turns& turns() { return turns_; }

 private:
  void tune();
  void rebuild();
  void free_used();

  const program& bound_;
  program native_;
  jit_report report_;
  background_options options_;
  device& device_;
  device_turns turns_;
  tuner tuner_;
  std::vector<literal> inputs_;
  graph_options graphs_;
  std::map<std::size_t, native_bytes> better_;  // improved kernels since the last rebuild, by group
  std::atomic<bool> started_ = false, cancelled_ = false, done_ = false;
  std::atomic<std::size_t> newest_ = 0, tuned_ = 0, improved_ = 0, swaps_ = 0;
  std::atomic<double> seconds_ = 0;
  // Guards the members below.
  mutable std::mutex mutex_;
  // The program of the newest version.
  executable current_;
  std::optional<execution_context> warmed_;
  // Returned versions that are to be freed.
  std::vector<version> used_;
  std::string problem_;
  std::vector<kernel_tuning> results_;
  std::jthread thread_;
};

}  // namespace kiln
