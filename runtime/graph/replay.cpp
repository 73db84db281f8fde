#include "runtime/graph/replay.hpp"

#include <algorithm>
#include <utility>

#include "ir/error.hpp"

namespace kiln {

graph_replay::graph_replay(const plan& of, device& target, const graph_options& options)
    : plan_(&of), device_(&target), options_(options), decision_(options.decision) {
  if (options_.policy == graph_policy::off) {
    eager_for_good_ = true;
  } else if (!target.has_graphs()) {
    eager_for_good_ = true;
    reason_ = target.info().host_memory ? "the host runs kernels itself" : "the driver has no graphs";
  } else if (options_.policy == graph_policy::automatic && decision_ && !decision_->replay) {
    eager_for_good_ = true;
    reason_ = "launches were faster";
  }
}

// Called before the first run that may use a graph.
void graph_replay::prepare() {
  prepared_ = true;
  cold_ = plan_->spares && options_.order == graph_order::measured;
  parts_ = cut_segments(*plan_, !cold_);
  if (parts_.empty()) {
    eager_for_good_ = true;
    reason_ = "no part of the plan is long enough for a graph";
    return;
  }
  part_at_.resize(plan_->blocks.size());
  for (std::size_t b = 0; b < part_at_.size(); ++b) part_at_[b].resize(plan_->blocks[b].steps.size());
  graphs_.reserve(parts_.size());
  adopted_ = cold_;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    part_at_[parts_[p].block][parts_[p].first] = static_cast<std::uint32_t>(p + 1);
    graphs_.emplace_back(*plan_, parts_[p], *device_, options_);
    captures_ |= graphs_.back().maker() == graph_maker::capture;
    auto spare = cold_ ? plan_->spares->take_graph(like(parts_[p])) : nullptr;
    if (spare) graphs_.back().adopt(std::move(spare));
    else adopted_ = false;
  }
  if (!cold_) choose_way();
}

void graph_replay::choose_way() {
  if (std::exchange(cold_, false)) {
    std::vector<graph_segment> ordered = cut_segments(*plan_);
    for (std::size_t p = 0; p < parts_.size(); ++p)
      parts_[p].after = std::move(ordered[p].after), parts_[p].branches = ordered[p].branches;
  }
  way_ = options_.order == graph_order::branches || (decision_ && decision_->branches) ? run_way::branches
                                                                                       : run_way::chain;
  if (decision_) return;
  std::vector<run_way> ways{way_};
  const bool branches = std::ranges::any_of(graphs_, &segment_graphs::has_branches);
  if (options_.order == graph_order::measured && branches) ways.push_back(run_way::branches);
  if (options_.policy == graph_policy::automatic) ways.push_back(run_way::eager);
  if (ways.size() == 1) return;
  trial_ = std::make_unique<graph_trial>(std::move(ways));
  for (queued_run& q : queued_) q.begin = device_->make_event(), q.end = device_->make_event();
}

spare_graph graph_replay::like(const graph_segment& part) const {
  spare_graph result{plan_->library, part.block};
  for (std::uint32_t n = 0; n < part.count; ++n) {
    const plan_work& what = plan_->blocks[part.block].steps[part.first + n].what;
    spare_graph::node& node = result.nodes.emplace_back(spare_graph::node{what.index()});
    if (const auto* l = std::get_if<launch_step>(&what))
      node = {what.index(), l->kernel.function, l->block, l->lds_bytes, l->waits};
  }
  return result;
}

std::vector<spare_graph> graph_replay::release() {
  std::vector<spare_graph> result;
  if (failures_) return result;
  for (std::size_t p = 0; p < graphs_.size(); ++p)
    if (graphs_[p].maker() == graph_maker::nodes && parts_[p].calls == 0)
      if (auto graph = graphs_[p].release()) {
        result.push_back(like(parts_[p]));
        result.back().graph = std::move(graph);
      }
  return result;
}

void graph_replay::begin(graph_run& run) {
  if (eager_for_good_) return;
  constexpr std::size_t cold_runs = 8;
  // The first run may be the only one, so build no graph for it unless the caller asked for graphs. One that other
  // sizes left costs less than launches.
  const bool only_adopt = runs_++ == 0 && options_.policy == graph_policy::automatic && (!decision_ || plan_->spares);
  if (only_adopt && !(plan_->spares && plan_->spares->has_graphs())) return;
  try {
    if (!prepared_) prepare();
    if (cold_) way_ = only_adopt && !adopted_ ? run_way::eager : run_way::chain;
    if (cold_ && runs_ > cold_runs) choose_way();
    if (trial_) look_at_queued();
  } catch (const std::exception& e) {
    fail(e.what());
  }
  if (eager_for_good_ || !trial_) return;
  run.turn_ = trial_->next();
  way_ = run.turn_->way;
  run.made_before_ = made();
}

std::size_t graph_run::replay(std::uint32_t block, std::size_t step, plan_pointers& pointers,
                              device_stream& stream) noexcept {
  graph_replay& r = replay_;
  if (r.eager_for_good_ || !r.prepared_ || r.way_ == run_way::eager) return 0;
  std::uint32_t part = r.part_at_[block][step];
  if (!part) return 0;
  if (r.before_capture() && r.graphs_[part - 1].maker() == graph_maker::capture) return 0;
  try {
    r.graphs_[part - 1].run(pointers, stream, r.way_ == run_way::branches, r.counts_);
    launched_ = true;
    return r.parts_[part - 1].count;
  } catch (const std::exception& e) {
    r.fail(e.what());
  } catch (...) {
    r.fail("an unknown exception");
  }
  return 0;
}

void graph_replay::end_waited(const graph_run& run, clock::time_point since) {
  if (run.launched_) ++replays_;
  if (!trial_ || !run.turn_ || made() != run.made_before_) return;  // fail() ends the trial
  take(*run.turn_, std::chrono::duration<double, std::milli>(clock::now() - since).count());
  if (trial_ || plan_->spares) return;                                  // graphs in sequence are for later plans
  for (segment_graphs& g : graphs_) g.keep(way_ == run_way::branches);  // the run has finished, so no graph is in use
}

void graph_replay::take(const graph_trial::turn& turn, double milliseconds) {
  if (!trial_) return;
  trial_->add(turn, milliseconds);
  decision_ = trial_->decision();
  if (!decision_) return;
  trial_.reset();
  way_ = !decision_->replay ? run_way::eager : decision_->branches ? run_way::branches : run_way::chain;
  if (decision_->replay) return;
  eager_for_good_ = true;
  reason_ = "launches were faster";
}

graph_replay::queued_run* graph_replay::begin_queued(const graph_run& run, device_stream& stream) {
  if (!run.turn_ || queued_end_ - queued_begin_ == queued_.size()) return nullptr;
  queued_run& q = queued_[queued_end_ % queued_.size()];
  q.turn = *run.turn_;
  try {
    q.begin->record(&stream);
  } catch (const std::exception& e) {
    fail(e.what());
    return nullptr;
  }
  q.since = clock::now();
  return &q;
}

void graph_replay::end_queued(const graph_run& run, queued_run* timed, device_stream& stream) {
  if (run.launched_) ++replays_;
  if (!timed || made() != run.made_before_) return;
  timed->host_ms = std::chrono::duration<double, std::milli>(clock::now() - timed->since).count();
  try {
    timed->end->record(&stream);
    ++queued_end_;
  } catch (const std::exception& e) {
    fail(e.what());
  }
}

// The cost of a run is the larger of its host time and its device time, because the two overlap.
void graph_replay::look_at_queued() {
  for (; queued_begin_ != queued_end_; ++queued_begin_) {
    queued_run& q = queued_[queued_begin_ % queued_.size()];
    if (!q.end->happened()) return;
    take(q.turn, std::max(q.host_ms, q.end->milliseconds_since(*q.begin)));
  }
}

void graph_replay::fail(const char* what) noexcept {
  ++failures_;
  eager_for_good_ = true;
  trial_.reset();
  try {
    if (reason_.empty()) reason_ = what;
  } catch (const std::bad_alloc&) {
    // The failure is counted even if its text cannot be stored.
  }
}

graph_report graph_replay::report() const {
  graph_report r;
  if (options_.policy != graph_policy::off)
    r.mode = eager_for_good_ ? "eager" : decision_ || options_.policy == graph_policy::on ? "replay" : "measuring";
  r.captures = counts_.captures, r.replays = replays_, r.patches = counts_.patches, r.updates = counts_.updates,
  r.rebuilds = counts_.rebuilds, r.failures = failures_;
  r.segments = parts_.size();
  r.branches = way_ == run_way::branches && !eager_for_good_;
  r.reason = reason_;
  return r;
}

}  // namespace kiln
