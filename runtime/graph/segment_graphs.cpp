#include "runtime/graph/segment_graphs.hpp"

#include <algorithm>

#include "ir/error.hpp"
#include "runtime/graph/graph_usage.hpp"

namespace kiln {
namespace {

// A driver that refuses every patch and every update would have each run make a graph.
constexpr std::size_t most_rebuilds = 8;

graph_maker maker_of(const graph_segment& what, graph_making making) {
  if (making == graph_making::nodes) return graph_maker::nodes;
  if (making == graph_making::capture) return graph_maker::capture;
  return what.calls > 1 ? graph_maker::capture : graph_maker::nodes;
}

}  // namespace

segment_graphs::segment_graphs(const plan& of, const graph_segment& what, device& target, const graph_options& options)
    : plan_(&of),
      what_(&what),
      device_(&target),
      maker_(maker_of(what, options.making)),
      most_(std::max(1u, options.most_graphs)),
      wanted_(what.slots.size()),
      dirty_(what.count) {
  entries_.reserve(2 * most_);  // of both orders
  for (values& v : seen_) v.resize(what.slots.size());
}

void segment_graphs::fill_wanted(const plan_pointers& pointers) {
  for (std::size_t s = 0; s < wanted_.size(); ++s) {
    const graph_slot& slot = what_->slots[s];
    wanted_[s] =
        slot.is_counter ? pointers.counter(slot.index) : reinterpret_cast<std::uintptr_t>(pointers[slot.index]);
  }
}

bool segment_graphs::seen_before() {
  bool seen = std::ranges::find(seen_, wanted_) != seen_.end();
  if (!seen) std::ranges::copy(wanted_, seen_[next_seen_++ % seen_.size()].begin());
  return seen;
}

void segment_graphs::run(plan_pointers& pointers, device_stream& stream, bool branches, graph_counts& counts) {
  fill_wanted(pointers);
  entry& which = fitting(pointers, branches && has_branches(), counts);
  which.last_use = ++clock_;
  which.graph->launch(stream);
  ++counts.launches;
}

void segment_graphs::keep(bool branches) {
  branches = branches && has_branches();
  std::erase_if(entries_, [&](const entry& e) { return e.branches != branches; });
}

void segment_graphs::adopt(std::unique_ptr<device_graph> graph) {
  constexpr std::uint32_t of_other_plan = UINT32_MAX;
  entries_.push_back(
      {std::move(graph), values(what_->slots.size()), std::vector<std::uint32_t>(what_->count, of_other_plan)});
}

std::unique_ptr<device_graph> segment_graphs::release() {
  entry* last = nullptr;
  for (entry& e : entries_)
    if (!e.branches && (!last || e.last_use > last->last_use)) last = &e;
  return last ? std::move(last->graph) : nullptr;
}

segment_graphs::entry& segment_graphs::fitting(plan_pointers& pointers, bool branches, graph_counts& counts) {
  entry* oldest = nullptr;
  std::size_t same = 0;
  for (entry& e : entries_) {
    if (e.branches != branches) continue;
    if (e.at == wanted_) {
      if (!has_sizes(e)) give_wanted(e, pointers, counts);
      return e;
    }
    if (!oldest || e.last_use < oldest->last_use) oldest = &e;
    ++same;
  }
  if (!oldest || (seen_before() && same < most_ && !has_too_many_graphs(*device_))) {
    auto graph = build(pointers, branches, counts);
    graph->instantiate();
    if (!oldest) seen_before();
    entry& made = entries_.emplace_back(entry{std::move(graph), wanted_, {}, branches, 0});
    for (std::uint32_t n = 0; n < what_->count; ++n) made.revisions.push_back(step(n).revision);
    return made;
  }
  give_wanted(*oldest, pointers, counts);
  return *oldest;
}

std::unique_ptr<device_graph> segment_graphs::build(plan_pointers& pointers, bool branches, graph_counts& counts) {
  auto graph = device_->make_graph(maker_);
  for (std::uint32_t i = 0; i < what_->count; ++i) {
    std::uint32_t last = i - 1;
    std::span<const std::uint32_t> chain(&last, i ? 1 : 0);
    graph->add(node(pointers, i), branches ? std::span<const std::uint32_t>(what_->after[i]) : chain);
  }
  graph->finish();
  ++counts.captures;
  return graph;
}

void segment_graphs::give_wanted(entry& to, plan_pointers& pointers, graph_counts& counts) {
  if (!patch(to, pointers, counts)) {
    auto other = build(pointers, to.branches, counts);
    if (to.graph->update(*other)) {
      ++counts.updates;
    } else {
      if (replaced_.size() == most_rebuilds)
        throw error(error_kind::unsupported, "the driver takes no other pointers for a graph");
      other->instantiate();
      ++counts.rebuilds;
      replaced_.push_back(std::move(to.graph));
      to.graph = std::move(other);
    }
  }
  std::ranges::copy(wanted_, to.at.begin());
  for (std::uint32_t n = 0; n < what_->count; ++n) to.revisions[n] = step(n).revision;
}

bool segment_graphs::has_sizes(const entry& e) const {
  for (std::uint32_t n = 0; n < what_->count; ++n)
    if (e.revisions[n] != step(n).revision) return false;
  return true;
}

bool segment_graphs::patch(entry& to, plan_pointers& pointers, graph_counts& counts) {
  dirty_.assign(dirty_.size(), false);
  for (std::size_t s = 0; s < wanted_.size(); ++s)
    if (to.at[s] != wanted_[s])
      for (std::uint32_t n : what_->slots[s].nodes) dirty_[n] = true;
  for (std::uint32_t n = 0; n < what_->count; ++n) {
    if (!dirty_[n] && to.revisions[n] == step(n).revision) continue;
    if (!to.graph->patch(n, node(pointers, n))) return false;
    ++counts.patches;
  }
  return true;
}

}  // namespace kiln
