#include "spirv/operands.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace kiln::spirv {

std::vector<dim> check_operands(const object& o, std::span<const shape> inputs, std::span<const shape> outputs) {
  auto fail = [&](const std::string& what) { throw error(error_kind::invalid_model, o.name + ": " + what); };
  const expression_scope scope{inputs, {}, &o.attributes, false, true};
  std::vector<dim> open;
  for (const input_restriction& r : o.restrictions)
    if (r.input >= inputs.size() || inputs[r.input].type != evaluate_type(r.type, scope))
      fail("input" + std::to_string(r.input) + " is not " + r.type);
  for (const std::string& r : o.requirements) {
    const dim holds = evaluate_condition(r, scope);
    if (holds == dim(0)) fail("'" + r + "' does not hold");
    if (!holds.is_static()) open.push_back((dim(1) - holds) * dim(std::int64_t{1} << 31));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (std::ranges::find(o.attributes, left_out_input(static_cast<std::uint32_t>(i)),
                          &attribute_values::value_type::first) != o.attributes.end() &&
        inputs[i].elements() != dim(0))
      fail("input" + std::to_string(i) + " is left out, and is " + inputs[i].str());
  const std::vector<shape> expected = infer(o, inputs);
  if (!std::ranges::equal(expected, outputs)) fail("its outputs are not those of its shape rules");
  return open;
}

}  // namespace kiln::spirv
