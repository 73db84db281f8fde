// Tunes kernels: compiles the candidates of one, times them against each other on the device, checks the fastest
// against the default configuration and keeps what it found as a record, and the winner's code in the cache.
// docs/tuning.md says how candidates are judged.
//
// A candidate that fails (does not compile, load, launch, end in time, or give the right numbers) is recorded with its
// reason and dropped; the default configuration is what remains. Nothing is thrown for it. One thread; compiling uses
// more, as jit_options say.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jit/kernel_compiler.hpp"
#include "jit/tuning/kernel_bench.hpp"
#include "jit/tuning/tuning_records.hpp"

namespace kiln {

struct tuner_options {
  tuning_effort effort = tuning_effort::full;
  bool again = false;  // also what was tuned before with as much effort
  bench_options bench = {};
  std::chrono::milliseconds candidate_limit{10000};  // for compiling one candidate
  std::chrono::milliseconds run_limit{10000};        // for its first run
  double margin = 0.01;  // a winner is faster than the default by this share at least, beyond doubt
  std::size_t most_bytes = std::size_t{1}
                           << 30;       // of packed weights and scratch memory of candidates that are loaded at a time
  std::function<double()> now_ms = {};  // a clock; none: the machine's
  std::function<bool()> cancelled = [] { return false; };
  // In place of the compiler, for tests. Throws kiln::error.
  std::function<native_bytes(const kernel_group&, const kernel_configuration&)> compile = {};
};

struct kernel_tuning {
  std::string symbol, payload;
  std::vector<shape> inputs;
  int occurrences = 0;
  double heat_ms = 0;  // of one run of the model, all occurrences together
  enum class state {
    tuned,
    known,
    not_reached,
    failed
  } outcome = state::not_reached;  // known: from a record of this compiler
  std::string reason;              // why it failed
  tuning_session session;          // tuned, known
  native_bytes winner;             // tuned, and another configuration than the default won

  double gain() const { return session.winner_ms > 0 ? session.default_ms / session.winner_ms : 1; }
};

class tuner {
 public:
  // `source` has static shapes. It and `records` must outlive the tuner; `records` may be null: nothing is looked up or
  // kept. A host device should be the tuner's own: a candidate that never ends keeps its threads for ever.
  tuner(const program& source, std::shared_ptr<device> target, const jit_options& jit, tuning_records* records,
        tuner_options options);

  const kernel_groups& groups() const { return groups_; }

  // One group; `until_ms` by the options' clock. Runs past it by a few timed runs at most, or by one candidate's limit.
  kernel_tuning tune(std::size_t group, double until_ms);

  // All groups, the hottest first, each with a share of the budget that is like its share of `heat_ms` (per group). 0:
  // no limit. `done` is called after each.
  std::vector<kernel_tuning> tune_all(
      const std::vector<double>& heat_ms, double budget_ms,
      const std::function<void(const kernel_tuning&, std::size_t group)>& done = nullptr);

  double now_ms() const { return options_.now_ms(); }
  void limit_samples(double ms) { options_.bench.sample_ms = std::min(options_.bench.sample_ms, ms); }

 private:
  native_bytes compile(const kernel_group& g, const kernel_configuration& configuration);
  kernel_tuning finish(std::size_t group, kernel_tuning result, const tuning_session* before);
  std::vector<kernel_configuration> candidates(const kernel_group& g, const std::optional<tuning_record>& record);
  bool saw_all(const tuning_session& session, const kernel_group& g);
  const program& source_;
  std::shared_ptr<device> device_;
  jit_options jit_;
  tuning_records* records_;
  tuner_options options_;
  kernel_groups groups_;
  kernel_compiler compiler_;
  bool lost_ = false;  // a candidate never came back: the device cannot be trusted with more
};

}  // namespace kiln
