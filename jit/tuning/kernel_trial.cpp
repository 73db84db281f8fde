#include "jit/tuning/kernel_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "jit/comparison.hpp"
#include "jit/deadline.hpp"
#include "jit/parallel.hpp"

namespace kiln {
namespace {

constexpr std::size_t most_in_round = 16;
// Share of the remaining time that may go to compiling. The rest is for timing what was compiled.
constexpr double compiling_share = 0.5;
// Bound on the error of a single element, in units of (tolerance of the norm) * (root mean square of the output).
// A single wrong element may vanish in the norm but exceeds this bound.
constexpr double largest_element_error = 30;

// Fill bytes of the outputs before a run: NaN in every float type, and a small positive number. If a candidate leaves
// elements unwritten, the result differs from the default's for at least one of the patterns.
constexpr std::array patterns{std::byte{0xff}, std::byte{0x3c}};

bool is_reduced(const shape& s) { return is_float(s.type) && storage_bits(s.type) < 32; }

bool agrees(const comparison& c) {
  if (!c.ok) return false;
  const double scale = c.relative_norm > 0 ? c.rms_error / c.relative_norm : 0;
  return c.max_error <= largest_element_error * c.tolerance * scale;
}

candidate_outcome outcome_of(const error& e, candidate_outcome otherwise) {
  return e.kind() == error_kind::timed_out ? candidate_outcome::timed_out : otherwise;
}

}  // namespace

kernel_trial::kernel_trial(kernel_trial_options options)
    : o_(std::move(options)),
      entries_(o_.configurations.size()),
      bench_(std::make_shared<kernel_bench>(o_.group, o_.inputs, o_.target, o_.target_name, o_.options.bench)) {
  for (const kernel_configuration& c : o_.configurations)
    session_.candidates.push_back({c, candidate_outcome::measured, 0, 0, 0, 0, {}});
  for (const auto* shapes : {&o_.group.inputs, &o_.group.outputs}) reduced_ |= std::ranges::any_of(*shapes, is_reduced);
}

bool kernel_trial::time_is_up() const { return lost_ || o_.options.cancelled() || o_.options.now_ms() >= o_.until_ms; }

void kernel_trial::fail(std::size_t candidate, candidate_outcome outcome, const std::string& reason) {
  session_.candidates[candidate].outcome = outcome;
  session_.candidates[candidate].reason = reason;
  if (auto& form = entries_[candidate].form; form && !lost_) bench_->drop(*form);
  entries_[candidate].form.reset();
}

// Records the timing of a candidate. The last round that it took part in counts.
void kernel_trial::note(std::size_t candidate, const timing& time) {
  candidate_result& c = session_.candidates[candidate];
  const bool wide = std::isinf(time.high);
  c.ms = time.median;
  c.low_ms = wide ? time.median : time.low;
  c.high_ms = wide ? time.median : time.high;
  c.samples = time.samples;
}

// Compiles the candidates [begin, end) in parallel, as many as time allows, and returns the end of those that were
// tried. Candidates whose code equals an earlier one's are marked as duplicates and not timed.
std::size_t kernel_trial::compile_round(std::size_t begin, std::size_t end) {
  std::vector<std::optional<error>> failures(end - begin);
  std::vector<char> tried(end - begin);
  const double now = o_.options.now_ms(), until = now + (o_.until_ms - now) * compiling_share;
  parallel_for(end - begin, o_.threads, [&](std::size_t i) {
    if (time_is_up() || (i > 0 && o_.options.now_ms() >= until)) return;
    tried[i] = 1;
    try {
      entries_[begin + i].native = o_.compile(o_.configurations[begin + i]);
    } catch (const error& e) {
      failures[i] = e;
    } catch (const std::exception& e) {
      failures[i].emplace(error_kind::compile_failed, e.what());
    }
  });
  end = begin + static_cast<std::size_t>(std::ranges::find(tried, 0) - tried.begin());
  for (std::size_t i = begin; i < end; ++i) {
    if (failures[i - begin]) {
      fail(i, outcome_of(*failures[i - begin], candidate_outcome::compile_failed), failures[i - begin]->what());
    } else if (auto [same, fresh] = code_.try_emplace(blake3(*entries_[i].native), i); !fresh) {
      fail(i, candidate_outcome::duplicate, fmt::format("the code of candidate {}", same->second));
      entries_[i].native = nullptr;
    }
  }
  return end;
}

// Loads the candidate and runs it once, under the time limit.
void kernel_trial::load(std::size_t candidate) {
  try {
    auto work = [bench = bench_, native = entries_[candidate].native] {
      std::size_t form = bench->add(native);
      bench->sample(form, 1);
      return form;
    };
    entries_[candidate].form = call_with_deadline(o_.options.run_limit, "its first run", work);
  } catch (const error& e) {
    if (e.kind() == error_kind::timed_out) {
      lost_ = true;
      if (o_.options.bench.turns) o_.options.bench.turns->give_up();
    }
    fail(candidate, outcome_of(e, candidate_outcome::launch_failed), e.what());
    if (candidate == 0) throw;
  }
}

bool kernel_trial::is_right(std::size_t candidate) {
  try {
    for (std::size_t p = 0; p < patterns.size(); ++p) {
      if (expected_[p].empty()) expected_[p] = bench_->outputs(*entries_[0].form, patterns[p]);
      auto got = bench_->outputs(*entries_[candidate].form, patterns[p]);
      for (std::size_t i = 0; i < got.size(); ++i) {
        comparison c = compare(got[i], expected_[p][i], reduced_ ? exactness::halves : exactness::own_types);
        if (!agrees(c)) {
          fail(candidate, candidate_outcome::wrong_numbers,
               fmt::format("output {}: {}; relative {:.3g}, largest {:.3g}", i,
                           c.ok ? "one element is far off" : c.reason, c.relative_norm, c.max_error));
          return false;
        }
        session_.error = std::max(session_.error, c.relative_norm);
      }
    }
    return true;
  } catch (const error& e) {
    fail(candidate, outcome_of(e, candidate_outcome::launch_failed), e.what());
    return false;
  }
}

// Times the members against the incumbent. The fastest one with correct outputs becomes the incumbent.
void kernel_trial::time_round(const std::vector<std::size_t>& members) {
  std::vector<std::size_t> field{incumbent_};
  for (std::size_t m : members) {
    if (time_is_up()) {
      session_.complete = false;
      break;
    }
    load(m);
    if (entries_[m].form) field.push_back(m);
  }
  if (lost_) return;
  halving_options racing{
      .most_samples = samples_within(2000, 48), .keep_first = true, .stop = [this] { return time_is_up(); }};
  halving_result round =
      successive_halving(field.size(), [&](std::size_t i) { return bench_->sample(*entries_[field[i]].form); }, racing);
  if (round.stopped) session_.complete = false;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (const auto& failure = round.candidates[i].failure)
      fail(field[i], outcome_of(*failure, candidate_outcome::launch_failed), failure->what());
    else if (round.candidates[i].time.samples) note(field[i], round.candidates[i].time);
  }
  if (!entries_[0].form) throw error(error_kind::internal, session_.candidates[0].reason);
  if (!entries_[incumbent_].form) incumbent_ = 0;
  for (std::size_t i : round.order) {
    if (field[i] == incumbent_) break;
    session_.error = 0;
    if (!is_right(field[i])) continue;
    incumbent_ = field[i];
    break;
  }
  for (std::size_t m : field)
    if (m != incumbent_ && m != 0 && entries_[m].form) {
      bench_->drop(*entries_[m].form);
      entries_[m] = {};
    }
}

// The number of samples of the default that take about `ms` milliseconds, between 6 and `most`.
int kernel_trial::samples_within(double ms, int most) const {
  const double each = std::max(o_.options.bench.sample_ms, session_.candidates[0].ms);
  return std::clamp(static_cast<int>(ms / each), 6, most);
}

// Times the incumbent against the default alone, until one is clearly faster. The default is replaced only by a
// candidate that is faster with statistical significance (clearly_faster).
void kernel_trial::final_round() {
  session_.winner_ms = session_.default_ms = session_.candidates[0].ms;
  if (incumbent_ == 0) return;
  const int most = samples_within(1000, 56);
  halving_options racing{.first_samples = std::min(8, most), .most_samples = most, .hopeless = INFINITY};
  std::array<std::size_t, 2> field{0, incumbent_};
  halving_result round =
      successive_halving(2, [&](std::size_t i) { return bench_->sample(*entries_[field[i]].form); }, racing);
  for (std::size_t i = 0; i < 2; ++i)
    if (round.candidates[i].time.samples) note(field[i], round.candidates[i].time);
  const timing &standard = round.candidates[0].time, &best = round.candidates[1].time;
  session_.winner_ms = session_.default_ms = standard.median;
  if (round.candidates[0].failure || round.candidates[1].failure ||
      !clearly_faster(best, standard, o_.options.margin)) {
    incumbent_ = 0;
    return;
  }
  session_.winner_ms = best.median;
  session_.winner = o_.configurations[incumbent_];
}

std::size_t kernel_trial::round_size() const {
  const std::size_t each = std::max<std::size_t>(1, bench_->form_bytes(*entries_[0].form));
  return std::clamp<std::size_t>(o_.options.most_bytes / each, 2, most_in_round);
}

tuning_session kernel_trial::run() {
  entries_[0].native = o_.compile({});
  code_.emplace(blake3(*entries_[0].native), 0);
  load(0);
  const std::size_t size = round_size();
  std::size_t tried = 1;
  while (tried < entries_.size() && !time_is_up()) {
    const std::size_t end = compile_round(tried, std::min(entries_.size(), tried + size));
    std::vector<std::size_t> members;
    for (std::size_t i = tried; i < end; ++i)
      if (entries_[i].native && session_.candidates[i].outcome == candidate_outcome::measured) members.push_back(i);
    if (end > tried) time_round(members);
    tried = end;
  }
  session_.complete = session_.complete && tried == entries_.size() && !lost_;
  if (!lost_) final_round();
  if (incumbent_ == 0) session_.error = 0;
  // The record leaves out candidates that the budget did not reach.
  std::erase_if(session_.candidates, [&](const candidate_result& c) {
    return c.outcome == candidate_outcome::measured && c.samples == 0 && !c.configuration.empty();
  });
  return session_;
}

}  // namespace kiln
