#include "jit/tuning/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "jit/deadline.hpp"
#include "jit/parallel.hpp"
#include "jit/rocm_candidate.hpp"
#include "jit/tuning/kernel_trial.hpp"

namespace kiln {
namespace {

double machine_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

tuner::tuner(const program& source, std::shared_ptr<device> target, const jit_options& jit, tuning_records* records,
             tuner_options options)
    : source_(source),
      device_(std::move(target)),
      jit_(jit),
      records_(records),
      options_(std::move(options)),
      groups_(group_code_objects(source)),
      compiler_(source, jit_) {
  jit_.kernel_limit = std::min(jit_.kernel_limit, options_.candidate_limit);
  if (!options_.now_ms) options_.now_ms = machine_ms;
}

native_bytes tuner::compile(const kernel_group& g, const kernel_configuration& configuration) {
  if (options_.compile) return options_.compile(g, configuration);
  // Only the default is looked up. Other configurations are rarely in the cache, and a remote layer is slow to ask.
  if (configuration.empty())
    if (auto found = compiler_.find(g, configuration)) return found;
  return compiler_.compile(g, configuration);
}

// The default first, then earlier winners (of another compiler, or of an incomplete session), then the rest.
std::vector<kernel_configuration> tuner::candidates(const kernel_group& g, const std::optional<tuning_record>& record) {
  // A hand-written kernel in amdgcnspirv has no configurations. The only choice is the compiler: LLVM or ROCm's.
  if (g.portable.format == code_format::amdgcnspirv) {
    std::vector<kernel_configuration> list(1);
    if (jit_.rocm && compiler_.rocm_form(g)) list.push_back({{rocm_choice, jit_.rocm}});
    return list;
  }
  std::vector<kernel_configuration> list = compiler_.candidates(g, options_.effort);
  if (!record) return list;
  std::vector<kernel_configuration> hints;
  for (const tuning_session& s : record->sessions)
    if (!s.winner.empty() && std::ranges::find(hints, s.winner) == hints.end()) hints.push_back(s.winner);
  std::erase_if(list, [&](const kernel_configuration& c) { return std::ranges::find(hints, c) != hints.end(); });
  list.insert(list.begin() + (list.empty() ? 0 : 1), hints.begin(), hints.end());
  return list;
}

// Whether a session has every candidate that exists now. For a kernel in amdgcnspirv, another version of ROCm is a new
// candidate.
bool tuner::saw_all(const tuning_session& session, const kernel_group& g) {
  if (g.portable.format != code_format::amdgcnspirv) return true;
  return std::ranges::all_of(candidates(g, std::nullopt), [&](const kernel_configuration& c) {
    return c.empty() ||
           std::ranges::find(session.candidates, c, &candidate_result::configuration) != session.candidates.end();
  });
}

kernel_tuning tuner::tune(std::size_t group, double until_ms) {
  const kernel_group& g = groups_.list[group];
  kernel_tuning result{g.portable.symbol,
                       g.portable.payload,
                       g.inputs,
                       g.occurrences,
                       0,
                       kernel_tuning::state::not_reached,
                       {},
                       {},
                       nullptr};
  if (lost_) {
    result.reason = "an earlier candidate never finished";
    return result;
  }
  auto record = records_ ? records_->find(g.portable.payload, g.inputs, g.outputs) : std::nullopt;
  const tuning_session* before = record ? record->session_of(records_->compiler()) : nullptr;
  try {
    if (before && before->complete && before->effort >= options_.effort && !options_.again && saw_all(*before, g)) {
      result.outcome = kernel_tuning::state::known;
      result.session = *before;
      return result;
    }
    std::vector<kernel_configuration> configurations = candidates(g, record);
    if (configurations.size() == 1) {
      result.outcome = kernel_tuning::state::tuned;  // the default is the only candidate
      return finish(group, std::move(result), before);
    }
    kernel_trial c({.group = g,
                    .configurations = std::move(configurations),
                    .compile = [&](const kernel_configuration& configuration) { return compile(g, configuration); },
                    .inputs = kernel_inputs(source_, *g.first, group),
                    .target = device_,
                    .target_name = jit_.target.name,
                    .threads = jit_.threads,
                    .options = options_,
                    .until_ms = until_ms});
    result.session = c.run();
    lost_ = c.lost();
    result.winner = c.winner();
    if (!result.session.complete && result.session.candidates.front().samples == 0 && !lost_) {
      result.reason = "the budget ended before a candidate was timed";
      return result;
    }
    result.outcome = kernel_tuning::state::tuned;
  } catch (const error& e) {
    // The default configuration could not be compiled or run, so there is nothing to compare candidates with.
    result.outcome = kernel_tuning::state::failed;
    result.reason = e.what();
    return result;
  }
  return finish(group, std::move(result), before);
}

kernel_tuning tuner::finish(std::size_t group, kernel_tuning result, const tuning_session* before) {
  const kernel_group& g = groups_.list[group];
  result.session.effort = options_.effort;
  result.session.generation = before ? before->generation + 1 : 1;
  if (records_) {
    result.session.compiler = records_->compiler();
    result.session.tuned_at =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    records_->store({identify(g.portable.payload, g.inputs, g.outputs, records_->device_class()), {result.session}});
  }
  if (result.winner) compiler_.keep(g, result.session.winner, result.winner);
  return result;
}

std::vector<kernel_tuning> tuner::tune_all(const std::vector<double>& ms_per_run, double budget_ms,
                                           const std::function<void(const kernel_tuning&, std::size_t group)>& done) {
  std::vector<std::size_t> order(groups_.list.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t g) { return ms_per_run[g]; });
  const double end = budget_ms > 0 ? now_ms() + budget_ms : std::numeric_limits<double>::infinity();
  double time_left = std::accumulate(ms_per_run.begin(), ms_per_run.end(), 0.0);
  std::vector<kernel_tuning> results;
  for (std::size_t group : order) {
    const double left = end - now_ms(), share = time_left > 0 ? std::min(1.0, 1.25 * ms_per_run[group] / time_left) : 1;
    time_left -= ms_per_run[group];
    if (left <= 0 || options_.cancelled()) {
      const kernel_group& g = groups_.list[group];
      results.push_back({g.portable.symbol,
                         g.portable.payload,
                         g.inputs,
                         g.occurrences,
                         0,
                         kernel_tuning::state::not_reached,
                         "the budget ended first",
                         {},
                         nullptr});
    } else {
      results.push_back(tune(group, std::isinf(left) ? left : now_ms() + left * share));
    }
    results.back().ms_per_run = ms_per_run[group];
    if (done) done(results.back(), group);
  }
  return results;
}

}  // namespace kiln
