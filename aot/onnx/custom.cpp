#include "aot/onnx/custom.hpp"

#include <algorithm>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "spirv/library/library.hpp"

namespace kiln::onnx_import {
namespace {

// The operator with the node's attributes in place of the defaults.
spirv::object with_attributes(const node& n, spirv::object o) {
  for (const auto& given : n.proto.attribute()) {
    auto known = std::ranges::find(o.attributes, given.name(), &std::pair<std::string, spirv::attribute_value>::first);
    if (known == o.attributes.end()) invalid("attribute '" + given.name() + "' is not declared by the custom operator");
    spirv::attribute_value& value = known->second;
    if (std::holds_alternative<std::int64_t>(value)) value = n.integer(given.name(), 0);
    else if (std::holds_alternative<double>(value)) value = given.has_i() ? static_cast<double>(given.i()) : n.real(given.name(), 0);
    else if (std::holds_alternative<std::string>(value)) value = n.text(given.name(), "");
    else value = n.integers(given.name()).value_or(std::vector<std::int64_t>{});
  }
  for (auto& [name, value] : o.attributes)
    if (name == "opset" && std::holds_alternative<std::int64_t>(value)) value = n.opset;
  return o;
}

bool fits_types(const spirv::object& o, std::span<const shape> inputs) {
  return std::ranges::all_of(o.restrictions, [&](const spirv::input_restriction& r) {
    return r.input < inputs.size() && inputs[r.input].type == spirv::evaluate_type(r.type, {inputs, {}, &o.attributes});
  });
}

bool fits(const node& n, const spirv::object& o, std::span<const shape> inputs) {
  if (!fits_types(o, inputs)) return false;
  if (o.requirements.empty()) return true;
  spirv::object here = with_attributes(n, o);
  return std::ranges::all_of(o.requirements, [&](const std::string& r) { return spirv::evaluate_integer(r, {inputs, {}, &here.attributes}).value() != 0; });
}

// One code object for an operator whose attributes are the node's already.
std::vector<value> add_object(node& n, const spirv::object& o, std::vector<value> inputs) {
  std::vector<shape> types;
  for (value v : inputs) types.push_back(v.type());
  std::vector<shape> outputs = spirv::infer(o, types);
  // Rules and arguments name tensors by number: that all of them exist is known here, not on the device.
  if (std::ranges::all_of(types, &shape::is_static) && std::ranges::all_of(outputs, &shape::is_static)) spirv::resolve(o, types, outputs);
  content_hash payload = n.owner.state().result.add_kernel(spirv::serialize(o));
  value first = n.b.add(code_object::make(o.name, code_format::amdgcnspirv, payload, "", outputs), std::move(inputs));
  std::vector<value> results;
  for (std::uint32_t k = 0; k < outputs.size(); ++k) results.push_back(builder::output(first, k));
  return results;
}

}  // namespace

std::vector<const spirv::object*> custom_operators(const import_state& state, std::string_view domain, std::string_view name) {
  std::vector<const spirv::object*> found;
  auto collect = [&](const std::vector<spirv::object>& operators) {
    for (const spirv::object& o : operators)
      if (o.domain == domain && o.name == name) found.push_back(&o);
  };
  if (state.options.custom_operators) collect(*state.options.custom_operators);
  if (found.empty() && !find_operator(domain, name)) collect(spirv::library());
  return found;
}

std::vector<value> import_custom(node& n, const std::vector<const spirv::object*>& candidates) {
  std::vector<value> inputs;
  std::vector<shape> types;
  std::string text;
  for (std::size_t i = 0; i < n.inputs(); ++i) {
    inputs.push_back(n.in(i));
    types.push_back(n.type(i));
    text += (text.empty() ? "" : ", ") + types.back().str();
  }
  const spirv::object* chosen = nullptr;
  for (const spirv::object* o : candidates)
    if (!chosen && fits(n, *o, types)) chosen = o;
  if (!chosen) refuse("the operator's kernels do not take " + (text.empty() ? "no inputs" : text) + " with these attributes");
  return add_object(n, with_attributes(n, *chosen), std::move(inputs));
}

std::vector<value> import_kernel(node& n, std::string_view name, std::vector<value> inputs, const spirv::attribute_values& attributes) {
  std::vector<shape> types;
  for (value v : inputs) types.push_back(v.type());
  for (const spirv::object& each : spirv::library()) {
    if (each.domain != "kiln" || each.name != name || !fits_types(each, types)) continue;
    spirv::object o = each;
    for (auto& [key, value] : o.attributes)
      if (auto given = std::ranges::find(attributes, key, &spirv::attribute_values::value_type::first); given != attributes.end()) value = given->second;
    return add_object(n, o, std::move(inputs));
  }
  refuse("no kernel of the library takes " + types.at(0).str());
}

}  // namespace kiln::onnx_import
