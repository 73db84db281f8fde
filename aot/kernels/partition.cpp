#include "aot/kernels/partition.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include "aot/kernels/joined_anchors.hpp"
#include "aot/kernels/kernel_order.hpp"
#include "aot/kernels/narrow_storage.hpp"
#include "aot/kernels/partition_tables.hpp"
#include "aot/kernels/traits.hpp"
#include "aot/kernels/value_sources.hpp"
#include "aot/passes/facts.hpp"
#include "aot/passes/quantized_matrix.hpp"
#include "aot/passes/reshape_groups.hpp"
#include "aot/passes/split_concats.hpp"
#include "ir/normalized_window.hpp"
#include "ir/ops/attention.hpp"
#include "ir/ops/cache_update.hpp"
#include "ir/ops/elementwise.hpp"
#include "ir/ops/selection.hpp"
#include "ir/prefix_mask.hpp"

namespace kiln {
namespace {

using namespace forming;

// Costs of a result in memory, in units of traits.hpp: of one element, and of the launch of one more kernel.
constexpr double write_cost = 4, read_cost = 2, launch_cost = 4096;

class partitioner {
 public:
  partitioner(module& m, const partition_options& options)
      : module_(m),
        options_(options),
        joined_(find_joined_anchors(m)),
        order_(m.instructions().size(),
               {[this](std::size_t unit, bool forward, const auto& each) { each_neighbour(unit, forward, each); },
                [this](std::size_t unit) { return nodes_[unit].inlined; }}) {
    for (instruction& i : m.instructions()) {
      number_[&i] = nodes_.size();
      nodes_.push_back({.at = &i});
    }
    for (const instruction& i : m.instructions()) find_window_of(i);
  }

  partition run() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) form_around_anchors(n);
    for (const joined_anchors::pair& each : joined_.pairs) join_anchors(each);
    for (value v : module_.outputs()) of(v).in_memory = true;
    for (const instruction* i : options_.in_memory) nodes_[number_.at(i)].in_memory = true;
    for (std::size_t n = nodes_.size(); n-- > 0;) decide(n);
    return result();
  }

 private:
  node& of(value v) { return nodes_[number_.at(v.producer)]; }
  std::size_t number(value v) { return number_.at(v.producer); }
  const std::vector<dim>& dims_of(std::size_t n) { return nodes_[n].at->outputs()[0].dims; }

  // Returns true for an output of the module and for what the options want in memory.
  bool is_asked_for(const instruction* at) const {
    return options_.in_memory.contains(at) ||
           std::ranges::any_of(module_.outputs(), [&](value v) { return v.producer == at; });
  }

  // The unit of the instruction's kernel, or the instruction's own unit if it is in no kernel.
  std::size_t unit_of(const instruction* at) {
    const std::size_t n = number_.at(at), c = nodes_[n].fusion;
    return c == none ? n : groups_[c].unit;
  }

  void each_neighbour(std::size_t unit, bool forward, const std::function<void(std::size_t)>& each) {
    auto of_member = [&](std::size_t n) {
      if (forward)
        for (const instruction* user : nodes_[n].at->users()) each(unit_of(user));
      else
        for (value v : nodes_[n].at->inputs()) each(unit_of(v.producer));
    };
    if (const std::size_t c = nodes_[unit].fusion; c == none) of_member(unit);
    else std::ranges::for_each(groups_[c].members, of_member);
  }

  std::size_t new_group(std::size_t first, bool anchored) {
    groups_.push_back({.members = {first},
                       .unit = first,
                       .anchored = anchored,
                       .anchor = first,
                       .operations = operations_of(*nodes_[first].at),
                       .dims = &dims_of(first)});
    nodes_[first].fusion = groups_.size() - 1;
    return groups_.size() - 1;
  }

  void join(std::size_t n, std::size_t g) {
    order_.merge(groups_[g].unit, n);
    auto& members = groups_[g].members;
    members.insert(std::upper_bound(members.begin(), members.end(), n), n);
    groups_[g].operations += operations_of(*nodes_[n].at);
    nodes_[n].fusion = g;
  }

  // A kernel computes the window before its normalization, together with all that lies between. Their results must not
  // be needed elsewhere.
  void find_window_of(const instruction& i) {
    const instruction* window = find_normalized_window(i);
    if (!window) return;
    std::vector<std::size_t> inside{number_.at(window)};
    for (const instruction* at = window->users()[0]; at != &i; at = at->users()[0]) inside.push_back(number_.at(at));
    if (std::ranges::any_of(inside, [&](std::size_t n) { return is_asked_for(nodes_[n].at); })) return;
    nodes_[inside[0]].window = true;
    for (std::size_t n : inside) nodes_[n].prologue = true;
  }

  // --- anchors and their epilogues

  void form_around_anchors(std::size_t n) {
    const instruction& at = *nodes_[n].at;
    if (nodes_[n].window) return;
    if (role_of(at.op()) == kernel_role::anchor) {
      new_group(n, true);
      return;
    }
    if (!keeps_indices(at.op()) || readers_widen(at) || joined_.widened.contains(&at)) return;
    std::vector<std::size_t> candidates;  // youngest first, because the results of older ones are available by then
    for (value v : at.inputs())
      if (std::size_t g = of(v).fusion;
          g != none && takes_epilogue(nodes_[groups_[g].anchor].at->op()) && *groups_[g].dims == dims_of(n))
        candidates.push_back(g);
    std::sort(candidates.rbegin(), candidates.rend());
    for (std::size_t g : candidates) {
      if (groups_[g].operations >= options_.most_operations || outputs_with(g, n) > options_.most_outputs) continue;
      if (order_.parted(n, groups_[g].unit)) continue;
      join(n, g);
      return;
    }
  }

  void join_anchors(const joined_anchors::pair& anchors) {
    const std::size_t from = nodes_[number_.at(anchors.inner)].fusion, to = nodes_[number_.at(anchors.own)].fusion;
    if (from == to || from == none || to == none) return;
    if (std::ranges::any_of(anchors.between, [&](const instruction* at) { return is_asked_for(at); })) return;
    for (const instruction* at : anchors.between)
      if (const std::size_t n = number_.at(at); nodes_[n].fusion == none && !order_.parted(n, groups_[to].unit))
        join(n, to);
    group &gone = groups_[from], &kept = groups_[to];
    const auto is_inside = [&](const instruction* user) {
      const std::size_t of_user = nodes_[number_.at(user)].fusion;
      return of_user == from || of_user == to;
    };
    const auto is_read_outside = [&](std::size_t n) {
      return is_asked_for(nodes_[n].at) || !std::ranges::all_of(nodes_[n].at->users(), is_inside);
    };
    if (anchors.hidden && std::ranges::any_of(gone.members, is_read_outside)) return;
    if (gone.operations + kept.operations > options_.most_operations || order_.parted(gone.unit, kept.unit)) return;
    order_.merge(kept.unit, gone.unit);
    for (std::size_t n : gone.members) nodes_[n].fusion = to;
    std::vector<std::size_t> all;
    std::ranges::merge(kept.members, gone.members, std::back_inserter(all));
    kept.members = std::move(all);
    kept.operations += gone.operations;
    gone.members.clear();
  }

  bool readers_widen(const instruction& at) {
    const auto number_of = [this](const instruction& i) { return number_.at(&i); };
    return readers_dequantize(at, number_of) || readers_widen_rounded(at, number_of);
  }

  // Number of outputs of the group with `n` in it. Readers that are not in the group yet count as outside.
  std::size_t outputs_with(std::size_t g, std::size_t n) {
    std::size_t outputs = 0;
    for (std::size_t member : groups_[g].members)
      outputs +=
          std::any_of(nodes_[member].at->users().begin(), nodes_[member].at->users().end(), [&](instruction* user) {
            std::size_t u = number_.at(user);
            return u != n && nodes_[u].fusion != g;
          });
    return outputs + 1;
  }

  // --- the remaining operations, from the outputs backwards

  void decide(std::size_t n) {
    node& at = nodes_[n];
    const operation& op = at.at->op();
    if (at.fusion != none) return read_operands_of_member(n);
    if (role_of(op) == kernel_role::structure) {
      for (value v : at.at->inputs()) of(v).in_memory = true;
      return;
    }
    if (at.at->users().empty() && !at.in_memory) return;
    merge(at.readings);
    if (const auto* r = op.get_if<reshape>()) {
      bool inlines = !at.in_memory &&
                     (at.prologue || is_ranked(at) || only_unit_dims_change(at.at->inputs()[0].type().dims, r->dims));
      if (!inlines) {
        at.alias = true;
        of(at.at->inputs()[0]).in_memory = true;
        return;
      }
    } else if (at.in_memory || !(at.prologue || worth_inlining(at))) {
      if (is_constant_like(at.at->output()) && at.at->outputs()[0].is_static() &&
          at.at->outputs()[0].bytes() <= most_constant_bytes) {
        constants_.push_back(at.at);
        at.in_memory = true;
        return;
      }
      materialize(n);
      return read_operands_of_member(n);
    }
    at.inlined = true;
    for (const reading& r : at.readings) groups_[r.fusion].operations += operations_of(*nodes_[n].at);
    read_operands_of_inlined(at);
  }

  // Returns true if only a top_k reads the result. It computes each element on its own, also of a flattened tensor.
  bool is_ranked(const node& at) const {
    if (at.readings.size() != 1) return false;
    const group& reader = groups_[at.readings[0].fusion];
    return reader.anchored && nodes_[reader.anchor].at->op().is<top_k>();
  }

  static void merge(std::vector<reading>& readings) {
    std::map<std::tuple<std::size_t, std::size_t, bool>, double> merged;
    for (const reading& r : readings) {
      double& count = merged[{r.fusion, r.map, r.before_loop}];
      count = std::max(count, r.count);
    }
    readings.clear();
    for (const auto& [key, count] : merged)
      readings.push_back({std::get<0>(key), std::get<1>(key), count, std::get<2>(key)});
  }

  bool worth_inlining(const node& at) {
    constexpr std::size_t most_readings = 8;
    if (is_constant_like(at.at->output())) return true;
    double elements = estimated_elements(at.at->outputs()[0]), evaluations = 0;
    for (const reading& r : at.readings) {
      const group& g = groups_[r.fusion];
      if (g.operations >= options_.most_operations) return false;
      if (g.anchored && !r.before_loop && is_contraction(nodes_[g.anchor].at->op()) && reads_irregularly(*at.at))
        return false;
      evaluations += r.count;
    }
    if (at.readings.size() == 1 && evaluations <= elements) return true;
    // A broadcast result takes more memory than its input, and a reader can broadcast it itself at no cost.
    if (at.at->op().is<broadcast>()) return true;
    if (at.readings.size() > most_readings && !reads_one_row(*at.at)) return false;
    // The result of QuantizeLinear takes less memory than any value before it, so the search stops here.
    if (is_quantization(*at.at)) return false;
    double cost = element_cost(at.at->op());
    return cost * evaluations <= (cost + write_cost) * elements + read_cost * evaluations + launch_cost &&
           (cost < 8 || evaluations <= 64 * elements);
  }

  // Makes `n` an output of its reader's fusion if that fusion reads it at its own indices. Otherwise makes it an output
  // of a new fusion.
  void materialize(std::size_t n) {
    for (const reading& r : nodes_[n].readings) {
      const group& g = groups_[r.fusion];
      if (r.map != 0 || g.anchored || *g.dims != dims_of(n) || is_full(g)) continue;
      if (!order_.parted(n, g.unit)) return join(n, r.fusion);
    }
    for (auto find : {&partitioner::row_kernel_of, &partitioner::sibling_of, &partitioner::stack_beside})
      if (const std::size_t g = (this->*find)(n); g != none) return join(n, g);
    new_group(n, false);
  }

  bool is_full(const group& g) const {
    return g.operations >= options_.most_operations || g.members.size() >= options_.most_outputs;
  }

  // Returns the kernel of a normalization or a softmax of n, or none. The kernel has the elements of n at hand and
  // writes them for n's other readers. It computes them once more for that, so they must be cheap.
  std::size_t row_kernel_of(std::size_t n) {
    const node& at = nodes_[n];
    if (!at.in_memory && at.readings.size() < 2) return none;
    for (const reading& r : at.readings) {
      const group& g = groups_[r.fusion];
      if (!g.anchored || r.map != map_through(r.fusion, 1, g.anchor) || *g.dims != dims_of(n) || is_full(g)) continue;
      const operation& anchor = nodes_[g.anchor].at->op();
      if (!takes_epilogue(anchor) || is_contraction(anchor)) continue;
      // The second evaluation may cost as much as a read of the element and a share of the launch that is saved.
      double budget = std::min(read_cost + launch_cost / estimated_elements(at.at->outputs()[0]), 16.0);
      if (costs_at_most(*at.at, budget) && !order_.parted(n, g.unit)) return r.fusion;
    }
    return none;
  }

  // Returns true if one element of the result costs at most `budget`, computed from values that are in memory. Takes
  // the cost off the budget.
  bool costs_at_most(const instruction& at, double& budget) {
    budget -= element_cost(at.op());
    return budget >= 0 && std::ranges::all_of(at.inputs(), [&](value v) {
             const bool computed = role_of(v.producer->op()) == kernel_role::inlinable && of(v).fusion == none;
             return !computed || of(v).in_memory || is_constant_like(v) || costs_at_most(*v.producer, budget);
           });
  }

  // Returns the kernel of a concat of the same shapes, or none, if only the caller reads the results of both, as the
  // stacks of keys and values that a decoder returns.
  std::size_t stack_beside(std::size_t n) {
    const instruction& at = *nodes_[n].at;
    if (!at.op().is<concat>() || !at.users().empty()) return none;
    const auto alike = [](value a, value b) { return a.type() == b.type(); };
    for (value v : module_.outputs()) {
      const instruction& other = *v.producer;
      const std::size_t c = of(v).fusion;
      if (&other == &at || c == none || other.op() != at.op() || !other.users().empty() || groups_[c].anchored ||
          is_full(groups_[c]) || at.inputs().size() * (groups_[c].members.size() + 1) > most_joined_inputs ||
          !std::ranges::equal(other.inputs(), at.inputs(), alike))
        continue;
      if (!order_.parted(n, groups_[c].unit)) return c;
    }
    return none;
  }

  // Returns the users of the operand, or, if there are very many, those that follow `at`: the last ones that got a
  // kernel.
  static std::span<instruction* const> readers_beside(const instruction& at, value operand) {
    constexpr std::size_t most = 256;
    const std::span<instruction* const> all = operand.producer->users();
    if (all.size() <= most) return all;
    const auto place = static_cast<std::size_t>(std::ranges::find(all, &at) - all.begin());
    return all.subspan(place, std::min(most, all.size() - place));
  }

  // Returns a pointwise fusion of the same dims that reads one of n's operands at the same indices (for a gather: its
  // indices), or none. One kernel for both reads the operand once.
  std::size_t sibling_of(std::size_t n) {
    const instruction& at = *nodes_[n].at;
    const bool gathers = at.op().is<gather>();
    if (!keeps_indices(at.op()) && !gathers) return none;
    for (std::size_t k = gathers ? 1 : 0; k < at.inputs().size(); ++k) {
      const value operand = at.inputs()[k];
      if (is_constant_like(operand)) continue;
      for (const instruction* user : readers_beside(at, operand)) {
        const std::size_t c = nodes_[number_.at(user)].fusion;
        const bool alike = gathers ? user->op() == at.op() && user->inputs()[1] == operand : keeps_indices(user->op());
        if (c == none || !alike || groups_[c].anchored || *groups_[c].dims != dims_of(n) || is_full(groups_[c]))
          continue;
        if (!order_.parted(n, groups_[c].unit)) return c;
      }
    }
    return none;
  }

  void read_operands_of_member(std::size_t n) {
    const node at = nodes_[n];
    const instruction& i = *at.at;
    bool anchor = role_of(i.op()) == kernel_role::anchor;
    for (std::size_t k = 0; k < i.inputs().size(); ++k) {
      value v = i.inputs()[k];
      if (of(v).fusion == at.fusion) continue;
      if (!anchor) {
        read(v, {at.fusion, keeps_indices(i.op()) ? 0 : map_through(at.fusion, 0, n),
                 reads_of(i, k, estimated_elements(i.outputs()[0]))});
      } else if (prefers_memory(i, k)) {
        of(v).in_memory = true;
      } else if (double reads = operand_reads(i.op(), k); reads > 0) {
        read(v, {at.fusion, map_through(at.fusion, k + 1, n), reads * estimated_elements(v.type()),
                 (k == 0 && has_few_queries(i)) || i.op().is<cache_update>()});
      } else if (const auto* d = i.op().get_if<dot>(); d && d->transpose_b && k == 1 && is_quantized_matrix(v)) {
        mark_prologue(v);
        read(v, {at.fusion, map_through(at.fusion, k + 1, n), estimated_elements(v.type())});
      } else if (const auto seen = k == 3 && i.op().is<attention>() ? find_prefix_mask(v) : std::nullopt) {
        // The kernel compares positions itself, so that it can skip the keys that no query sees.
        mark_comparison(v, *seen);
        read(v, {at.fusion, map_through(at.fusion, k + 1, n), estimated_elements(v.type())});
      } else if (reads_channels(i, k) && of(v.producer->inputs()[0]).fusion != none) {
        // The image is the result of an anchor's kernel, so it is in memory.
        read(v, {at.fusion, map_through(at.fusion, k + 1, n), estimated_elements(v.type())});
      } else if (const auto whole = viewed(v); whole && reads_views(i.op(), k, whole->producer->op())) {
        read(v, {at.fusion, map_through(at.fusion, k + 1, n), estimated_elements(v.type())});
      } else {
        of(v).in_memory = true;
      }
    }
  }

  // Lets the readers of a prefix mask compute it from its limits, which are in memory.
  void mark_comparison(value v, const prefix_mask& found) {
    of(v).prologue = true;
    for (value side : {found.columns, found.rows})
      for (value part = side; part != found.limit; part = part.producer->inputs()[0]) {
        of(part).prologue = true;
        if (part.producer->inputs().empty()) break;
      }
    of(found.limit).in_memory = true;
  }

  void mark_prologue(value v) {
    if (role_of(v.producer->op()) == kernel_role::structure) return;
    of(v).prologue = true;
    for (value input : v.producer->inputs()) mark_prologue(input);
  }

  void read_operands_of_inlined(const node& at) {
    const instruction& i = *at.at;
    std::size_t n = number_.at(&i);
    if (at.window) {
      for (value v : i.inputs()) of(v).in_memory = true;
      return;
    }
    for (const reading r : std::vector<reading>(at.readings))
      for (std::size_t k = 0; k < i.inputs().size(); ++k)
        read(i.inputs()[k], {r.fusion, keeps_indices(i.op()) ? r.map : map_through(r.fusion, r.map, n),
                             reads_of(i, k, r.count), r.before_loop});
  }

  void read(value v, const reading& r) { of(v).readings.push_back(r); }

  // Index maps are numbered by their derivation; 0 is the identity.
  std::size_t map_through(std::size_t fusion, std::size_t map, std::size_t n) {
    return maps_.try_emplace({fusion, map, n}, maps_.size() + 1000).first->second;
  }

  // --- the result

  partition result() {
    partition made;
    std::vector<std::size_t> order;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (!groups_[g].members.empty()) order.push_back(g);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return groups_[a].members.back() < groups_[b].members.back(); });
    for (std::size_t g : order) {
      fusion c;
      for (std::size_t n : groups_[g].members) {
        instruction* member = nodes_[n].at;
        made.owner[member] = made.fusions.size();
        c.members.push_back(member);
        for (std::uint32_t k = 0; k < member->outputs().size(); ++k)
          if (given_out({member, k}, g) || (member->outputs().size() > 1)) c.outputs.push_back({member, k});
      }
      made.fusions.push_back(std::move(c));
    }
    for (const node& n : nodes_)
      if (n.alias) made.in_memory.insert(n.at);
    made.in_memory.insert(constants_.begin(), constants_.end());
    made.constants = std::move(constants_);
    return made;
  }

  bool given_out(value v, std::size_t g) {
    // The state of a decoder is updated even if only this kernel reads it.
    if (v.producer->op().is<cache_update>()) return true;
    if (of(v).in_memory || std::find(module_.outputs().begin(), module_.outputs().end(), v) != module_.outputs().end())
      return true;
    return std::any_of(v.producer->users().begin(), v.producer->users().end(),
                       [&](instruction* user) { return nodes_[number_.at(user)].fusion != g; });
  }

  static constexpr std::size_t most_constant_bytes = std::size_t{16} << 20;

  module& module_;
  partition_options options_;
  joined_anchors joined_;
  std::vector<node> nodes_;
  std::unordered_map<const instruction*, std::size_t> number_;
  std::vector<group> groups_;
  kernel_order order_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::size_t> maps_;
  std::vector<instruction*> constants_;
};

}  // namespace

partition make_partition(module& m, const partition_options& options) { return partitioner(m, options).run(); }

}  // namespace kiln
