// One kernel's candidates against each other: compiled in heats, raced, the fastest checked, and in the end raced once
// more against the default alone. After each heat there is a champion, so it may end at any time. Internal to the
// tuner; one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "jit/tuning/race.hpp"
#include "jit/tuning/tuner.hpp"

namespace kiln {

struct contest_options {
  const kernel_group& group;
  std::vector<kernel_configuration> configurations;  // the default first
  std::function<native_bytes(const kernel_configuration&)> compile;
  std::vector<kernel_input> inputs;
  std::shared_ptr<device> target;
  std::string target_name;
  int threads = 0;               // that compile
  const tuner_options& options;  // outlives the contest
  double until_ms = 0;
};

class contest {
 public:
  explicit contest(contest_options options);

  // Throws kiln::error where the default configuration cannot be compiled, loaded or run.
  tuning_session run();

  native_bytes winner() const { return champion_ == 0 ? nullptr : entries_[champion_].native; }  // null: the default
  bool lost() const { return lost_; }  // a candidate never came back from its first run

 private:
  struct entry {
    native_bytes native;
    std::optional<std::size_t> form;  // of the bench, while it is loaded
  };
  bool time_is_up() const;
  int samples_within(double ms, int most) const;
  std::size_t compile_heat(std::size_t begin, std::size_t end);
  void load(std::size_t candidate);
  void heat(const std::vector<std::size_t>& members);
  bool is_right(std::size_t candidate);
  void final_race();
  void fail(std::size_t candidate, candidate_outcome outcome, const std::string& reason);
  void note(std::size_t candidate, const timing& time);
  std::size_t heat_size() const;

  contest_options o_;
  tuning_session session_;
  std::vector<entry> entries_;
  std::shared_ptr<kernel_bench> bench_;       // shared with a first run that never comes back
  std::map<content_hash, std::size_t> code_;  // of what was compiled, by whom
  std::vector<literal> expected_[2];          // the default's outputs, over the two patterns
  std::size_t champion_ = 0;
  bool reduced_ = false, lost_ = false;
};

}  // namespace kiln
