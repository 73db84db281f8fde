#include "aot/passes/loop_bodies.hpp"

#include <algorithm>
#include <list>
#include <string>
#include <vector>

#include "ir/ops/all.hpp"

namespace kiln {

value add_invariant(module& body, const shape& type) {
  const std::vector<value> parameters = body.parameters();
  std::string name;
  std::size_t number = parameters.size();
  do name = "invariant" + std::to_string(number++);
  while (std::ranges::any_of(parameters, [&](value v) { return module::parameter_name(v) == name; }));
  const value made = body.add_parameter(name, type);
  // The order of the parameters is kept, because it matches the operands.
  auto& list = body.instructions();
  std::vector<std::list<instruction>::iterator> places;
  for (auto at = list.begin(); at != list.end(); ++at)
    if (at->op().is<parameter>()) places.push_back(at);
  for (std::size_t i = places.size(); i-- > 0;) list.splice(list.begin(), list, places[i]);
  return made;
}

std::map<const module*, std::size_t> body_uses(program& p) {
  std::map<const module*, std::size_t> uses;
  for (module& m : p.modules())
    for (const instruction& at : m.instructions())
      for (const module* body : at.bodies()) ++uses[body];
  return uses;
}

}  // namespace kiln
