// Finds the fastest of one kernel's candidates. Candidates are compiled and timed in batches; each batch competes with
// the best candidate so far (the incumbent), and the fastest of them is checked for correctness. At the end the
// incumbent is timed against the default alone. There is an incumbent after every batch, so the trial may stop at any
// time. Internal to the tuner; used by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "jit/tuning/successive_halving.hpp"
#include "jit/tuning/tuner.hpp"

namespace kiln {

struct kernel_trial_options {
  const kernel_group& group;
  std::vector<kernel_configuration> configurations;  // the default first
  std::function<native_bytes(const kernel_configuration&)> compile;
  std::vector<kernel_input> inputs;
  std::shared_ptr<device> target;
  std::string target_name;
  int threads = 0;               // for compiling
  const tuner_options& options;  // outlives the trial
  double until_ms = 0;
};

class kernel_trial {
 public:
  explicit kernel_trial(kernel_trial_options options);

  // Throws kiln::error if the default configuration cannot be compiled, loaded or run.
  tuning_session run();

  native_bytes winner() const { return incumbent_ == 0 ? nullptr : entries_[incumbent_].native; }  // null: the default
  bool lost() const { return lost_; }  // a candidate's first run never finished

 private:
  struct entry {
    native_bytes native;
    std::optional<std::size_t> form;  // its index in the bench, while it is loaded
  };
  bool time_is_up() const;
  int samples_within(double ms, int most) const;
  std::size_t compile_round(std::size_t begin, std::size_t end);
  void load(std::size_t candidate);
  void time_round(const std::vector<std::size_t>& members);
  bool is_right(std::size_t candidate);
  void final_round();
  void fail(std::size_t candidate, candidate_outcome outcome, const std::string& reason);
  void note(std::size_t candidate, const timing& time);
  std::size_t round_size() const;

  kernel_trial_options o_;
  tuning_session session_;
  std::vector<entry> entries_;
  // Shared with the thread of a first run, which may never finish.
  std::shared_ptr<kernel_bench> bench_;
  std::map<content_hash, std::size_t> code_;  // hash of the compiled code -> the first candidate that has it
  std::vector<literal> expected_[2];          // the default's outputs for each of the two fill patterns
  std::size_t incumbent_ = 0;
  bool reduced_ = false, lost_ = false;
};

}  // namespace kiln
