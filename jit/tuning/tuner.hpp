// Tunes kernels. For each kernel it compiles the candidate configurations, times them against each other on the device
// and checks the fastest one against the default configuration. The result is stored as a tuning record and the
// winner's code in the cache. docs/tuning.md says how candidates are compared.
//
// A candidate fails if it does not compile, load, launch, finish in time or compute the right numbers. A failed
// candidate is recorded with its reason and dropped; nothing is thrown for it. If no candidate is better, the default
// configuration stays. Used by one thread; compiling uses as many threads as jit_options say.
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
  bool again = false;  // tune kernels again that have a complete record of the same effort
  bench_options bench = {};
  std::chrono::milliseconds candidate_limit{10000};  // for compiling one candidate
  std::chrono::milliseconds run_limit{10000};        // for the first run of a candidate
  double margin = 0.01;  // a winner must be clearly faster than the default, by at least this fraction
  // Bound on packed weights and scratch memory of the candidates that are loaded at a time.
  std::size_t most_bytes = std::size_t{1} << 30;
  std::function<double()> now_ms = {};  // a clock in milliseconds; null: std::chrono::steady_clock
  std::function<bool()> cancelled = [] { return false; };
  // Used instead of the compiler in tests. Throws kiln::error.
  std::function<native_bytes(const kernel_group&, const kernel_configuration&)> compile = {};
};

struct kernel_tuning {
  std::string symbol, payload;
  std::vector<shape> inputs;
  int occurrences = 0;
  double ms_per_run = 0;  // time that one run of the model spends in all occurrences of this kernel
  enum class state {
    tuned,
    known,
    not_reached,
    failed
  } outcome = state::not_reached;  // known: taken from a record of this compiler
  std::string reason;              // failed, not_reached: why
  tuning_session session;          // valid if tuned or known
  native_bytes winner;             // code of the winner; null if the kernel was not tuned or the default won

  double gain() const { return session.winner_ms > 0 ? session.default_ms / session.winner_ms : 1; }
};

class tuner {
 public:
  // `source` must have static shapes. `source` and `records` must outlive the tuner. If `records` is null, nothing is
  // looked up or stored. A host device should not be shared with anybody else, because a candidate that never finishes
  // occupies its threads forever.
  tuner(const program& source, std::shared_ptr<device> target, const jit_options& jit, tuning_records* records,
        tuner_options options);

  const kernel_groups& groups() const { return groups_; }

  // Tunes one group until `until_ms` of the options' clock. It may exceed that by a few timed runs, or by the time
  // limit of one candidate.
  kernel_tuning tune(std::size_t group, double until_ms);

  // Tunes all groups in descending order of their time per run. `ms_per_run` has one entry per group; each group's
  // share of the budget is roughly proportional to it. A budget of 0 means no limit. `done` is called after each group.
  std::vector<kernel_tuning> tune_all(
      const std::vector<double>& ms_per_run, double budget_ms,
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
  bool lost_ = false;  // a candidate never finished, so the device is not used for further candidates
};

}  // namespace kiln
