#include "aot/passes/hoist_loop_invariants.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "aot/kernels/traits.hpp"
#include "aot/passes/facts.hpp"
#include "aot/passes/loop_bodies.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/rewrite_log.hpp"
#include "ir/ops/all.hpp"

namespace kiln {
namespace {

bool may_move(const instruction& at) {
  const operation& op = at.op();
  return at.bodies().empty() && !op.is<parameter>() && !op.is<constant>() && !op.is<bounded>() &&
         !op.is<data_sizes>() && !op.is<code_object>();
}

bool computes(const operation& op) { return keeps_indices(op) || role_of(op) == kernel_role::anchor; }

class hoisting {
 public:
  hoisting(module& outside, place at) : outside_(outside), write_(outside, at), body_(*at->bodies()[0]) {
    const loop& op = *at->op().get_if<loop>();
    const std::vector<value> parameters = body_.parameters();
    for (std::size_t i = first_invariant(op); i < parameters.size(); ++i) moved_[parameters[i]] = at->inputs()[i];
  }

  // Returns how many values were turned into invariants.
  std::size_t apply() {
    const std::vector<value> frontier = find_frontier();
    if (frontier.empty()) return 0;
    instruction& old = *write_.root();
    std::vector<value> inputs = old.inputs();
    for (value inside : frontier) {
      inputs.push_back(outside_value(inside));
      value parameter = add_invariant(body_, inside.type());
      body_.replace(inside, parameter);
      // Values later in the frontier may be computed from this one.
      moved_[parameter] = inputs.back();
    }
    body_.erase_dead();
    value made = outside_.insert(&old, old.op(), std::move(inputs), old.bodies());
    made.producer->set_origin(old.origin());
    for (std::uint32_t i = 0; i < old.outputs().size(); ++i) outside_.replace({&old, i}, {made.producer, i});
    return frontier.size();
  }

 private:
  // Returns the invariant values that are computed in the body and read by an instruction that cannot move.
  std::vector<value> find_frontier() {
    // Maps an invariant instruction to true if something is computed on the way to it.
    std::map<const instruction*, bool> invariant;
    for (instruction& at : body_.instructions()) {
      const bool given = moved_.contains(at.output()) || at.op().is<constant>();
      const bool follows = may_move(at) && !at.inputs().empty() &&
                           std::ranges::all_of(at.inputs(), [&](value v) { return invariant.contains(v.producer); });
      if (!given && !follows) continue;
      invariant[&at] =
          follows && !is_constant_like(at.output()) &&
          (computes(at.op()) || std::ranges::any_of(at.inputs(), [&](value v) { return invariant.at(v.producer); }));
    }
    std::vector<value> frontier;
    for (instruction& at : body_.instructions()) {
      const auto found = invariant.find(&at);
      if (found == invariant.end() || !found->second) continue;
      for (std::uint32_t i = 0; i < at.outputs().size(); ++i)
        if (is_read_inside({&at, i}, invariant)) frontier.push_back({&at, i});
    }
    return frontier;
  }

  bool is_read_inside(value v, const std::map<const instruction*, bool>& invariant) const {
    if (std::ranges::find(body_.outputs(), v) != body_.outputs().end()) return true;
    return std::ranges::any_of(v.producer->users(), [&](const instruction* user) {
      return !invariant.contains(user) && std::ranges::find(user->inputs(), v) != user->inputs().end();
    });
  }

  // Returns the value in the module around the loop. Copies the instructions that compute it.
  value outside_value(value inside) {
    if (auto found = moved_.find(inside); found != moved_.end()) return found->second;
    instruction& at = *inside.producer;
    if (const literal* data = module::constant(inside)) return moved_[inside] = write_.constant(*data);
    std::vector<value> inputs;
    for (value v : at.inputs()) inputs.push_back(outside_value(v));
    const value copy = write_.add(at.op(), std::move(inputs));
    for (std::uint32_t i = 0; i < at.outputs().size(); ++i) moved_[{&at, i}] = {copy.producer, i};
    return moved_.at(inside);
  }

  module& outside_;
  rewriter write_;
  module& body_;
  // Maps values of the body to values of the module around it.
  std::map<value, value> moved_;
};

}  // namespace

bool hoist_loop_invariants::apply(program& p) const {
  std::map<const module*, std::size_t> uses = body_uses(p);
  bool changed = false;
  // Inner bodies come after the modules around them. Values move out by one level per loop, so process inner loops
  // first.
  for (auto m = p.modules().rbegin(); m != p.modules().rend(); ++m) {
    for (place here = m->instructions().begin(); here != m->instructions().end(); ++here) {
      if (!here->op().is<loop>() || !m->has_uses(&*here) || uses[here->bodies()[0]] != 1) continue;
      const std::size_t moved = hoisting(*m, here).apply();
      changed |= moved > 0;
      for (std::size_t i = 0; log && i < moved; ++i) log->fired(name(), "loop", here->origin());
    }
    m->erase_dead();
  }
  return changed;
}

}  // namespace kiln
