#include "aot/passes/release_unchanged_values.hpp"

#include <map>
#include <vector>

#include "aot/passes/loop_bodies.hpp"
#include "aot/rewrite_log.hpp"
#include "ir/ops/all.hpp"

namespace kiln {
namespace {

// Returns, for each carried value, whether the body passes it on as it gets it.
std::vector<bool> unchanged_values(const loop& op, const module& body) {
  const std::vector<value> parameters = body.parameters();
  std::vector<bool> unchanged;
  for (std::size_t i = 0; i < static_cast<std::size_t>(op.carried); ++i)
    unchanged.push_back(body.outputs()[1 + i] == parameters[2 + i]);
  return unchanged;
}

// Returns how many values have become invariants.
std::size_t release(module& outside, instruction& old) {
  loop op = *old.op().get_if<loop>();
  module& body = *old.bodies()[0];
  const std::vector<bool> unchanged = unchanged_values(op, body);
  const std::vector<value> parameters = body.parameters(), given = old.inputs();
  std::vector<value> inputs{given[0], given[1]}, released, outputs{body.outputs()[0]};
  std::vector<std::string> names{body.output_names()[0]};
  // The new output that stands for each old one; of released values, none does.
  std::vector<std::uint32_t> kept;
  for (std::size_t i = 0; i + 1 < body.outputs().size(); ++i) {
    const bool releases = i < unchanged.size() && unchanged[i];
    if (releases) {
      released.push_back(given[2 + i]);
      continue;
    }
    if (i < unchanged.size()) inputs.push_back(given[2 + i]);
    kept.push_back(static_cast<std::uint32_t>(i));
    outputs.push_back(body.outputs()[1 + i]);
    names.push_back(body.output_names()[1 + i]);
  }
  if (released.empty()) return 0;
  inputs.insert(inputs.end(), given.begin() + static_cast<std::ptrdiff_t>(first_invariant(op)), given.end());
  inputs.insert(inputs.end(), released.begin(), released.end());
  body.set_outputs(std::move(outputs), std::move(names));
  for (std::size_t i = 0; i < unchanged.size(); ++i) {
    if (!unchanged[i]) continue;
    body.replace(parameters[2 + i], add_invariant(body, parameters[2 + i].type()));
    body.erase(parameters[2 + i].producer);
  }
  for (std::uint32_t i = 0; i < unchanged.size(); ++i)
    if (unchanged[i]) outside.replace({&old, i}, given[2 + i]);
  op.carried -= static_cast<std::int64_t>(released.size());
  if (kept.empty()) return released.size();  // a loop without results is dead
  const value made = outside.insert(&old, op, std::move(inputs), old.bodies());
  made.producer->set_origin(old.origin());
  for (std::uint32_t i = 0; i < kept.size(); ++i) outside.replace({&old, kept[i]}, {made.producer, i});
  return released.size();
}

}  // namespace

bool release_unchanged_values::apply(program& p) const {
  const std::map<const module*, std::size_t> uses = body_uses(p);
  bool changed = false;
  for (module& m : p.modules()) {
    for (auto here = m.instructions().begin(); here != m.instructions().end(); ++here) {
      if (!here->op().is<loop>() || !m.has_uses(&*here) || uses.at(here->bodies()[0]) != 1) continue;
      const std::size_t released = release(m, *here);
      changed |= released > 0;
      for (std::size_t i = 0; log && i < released; ++i) log->fired(name(), "loop", here->origin());
    }
    m.erase_dead();
  }
  return changed;
}

}  // namespace kiln
