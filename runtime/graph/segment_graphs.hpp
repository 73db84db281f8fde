// The graphs of one part of a plan in one context: a bounded number, each with the pointers that it was made for or
// given last. A run whose pointers one of them has launches it as it is, after nodes with other sizes (plan_series) are
// patched; otherwise the one used longest ago is patched,
// unless the same pointers were asked for a short while ago: then callers take turns with a few sets of tensors, and
// another graph is made while there is room (graph_usage.hpp). Used by one thread at a time; launching and patching
// allocate nothing. Errors are thrown; the next run may then not use it any more.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runtime/graph/graph_options.hpp"
#include "runtime/graph/segments.hpp"
#include "runtime/plan_pointers.hpp"

namespace kiln {

// The running totals of a context.
struct graph_counts {
  std::size_t captures = 0, patches = 0, updates = 0, rebuilds = 0, launches = 0;
};

class segment_graphs {
 public:
  // `what` is a part of `of`; both, and the device, outlive it.
  segment_graphs(const plan& of, const graph_segment& what, device& target, const graph_options& options);

  // Enqueues the part with the pointers as they are; `branches` chooses between the two orders, which have graphs of
  // their own.
  void run(plan_pointers& pointers, device_stream& stream, bool branches, graph_counts& counts);
  // Drops the graphs of the other order. Nothing that was launched may still run.
  void keep(bool branches);
  // Begins with a graph in sequence that was launched for another plan; its nodes do the same work with other sizes.
  void adopt(std::unique_ptr<device_graph> graph);
  // Returns the graph in sequence that was used last, or null. Nothing that was launched may still run.
  std::unique_ptr<device_graph> release();
  graph_maker maker() const { return maker_; }
  bool has_branches() const { return what_->branches && maker_ == graph_maker::nodes; }

 private:
  using values = std::vector<std::uintptr_t>;  // per slot
  struct entry {
    std::unique_ptr<device_graph> graph;
    values at;
    std::vector<std::uint32_t> revisions;  // per node: of its step, when the node got its sizes
    bool branches = false;
    std::uint64_t last_use = 0;
  };

  entry& fitting(plan_pointers& pointers, bool branches, graph_counts& counts);
  void fill_wanted(const plan_pointers& pointers);
  bool seen_before();
  std::unique_ptr<device_graph> build(plan_pointers& pointers, bool branches, graph_counts& counts);  // finished
  void give_wanted(entry& to, plan_pointers& pointers, graph_counts& counts);
  bool patch(entry& to, plan_pointers& pointers, graph_counts& counts);
  const plan_step& step(std::uint32_t node) const { return plan_->blocks[what_->block].steps[what_->first + node]; }
  bool has_sizes(const entry& e) const;
  graph_node node(plan_pointers& pointers, std::uint32_t index) const { return pointers.node(step(index)); }

  const plan* plan_;
  const graph_segment* what_;
  device* device_;
  graph_maker maker_;
  std::size_t most_;
  std::vector<entry> entries_;
  std::vector<std::unique_ptr<device_graph>>
      replaced_;  // may still run; they go with the context, which waits for its runs
  values wanted_;
  std::array<values, 8> seen_;  // asked for by the last runs that found no graph
  std::size_t next_seen_ = 0;
  std::vector<bool> dirty_;  // nodes to be patched
  std::uint64_t clock_ = 0;
};

}  // namespace kiln
