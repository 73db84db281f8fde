#include "aot/onnx/custom.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/tensors.hpp"
#include "spirv/library/library.hpp"

namespace kiln::onnx_import {
namespace {

// Returns the operator with the node's attributes instead of the defaults.
spirv::object with_attributes(const node& n, spirv::object o, const std::vector<bool>& given_inputs) {
  for (const auto& given : n.proto.attribute()) {
    auto known = std::ranges::find(o.attributes, given.name(), &std::pair<std::string, spirv::attribute_value>::first);
    if (known == o.attributes.end()) invalid("attribute '" + given.name() + "' is not declared by the custom operator");
    spirv::attribute_value& value = known->second;
    if (std::holds_alternative<std::int64_t>(value)) value = n.integer(given.name(), 0);
    else if (std::holds_alternative<double>(value))
      value = given.has_i() ? static_cast<double>(given.i()) : n.real(given.name(), 0);
    else if (std::holds_alternative<std::string>(value)) value = n.text(given.name(), "");
    else value = n.integers(given.name()).value_or(std::vector<std::int64_t>{});
  }
  for (auto& [name, value] : o.attributes)
    if (name == "opset" && std::holds_alternative<std::int64_t>(value)) value = n.opset;
  for (std::uint32_t i = 0; i < given_inputs.size(); ++i)
    if (!given_inputs[i]) o.attributes.emplace_back(spirv::left_out_input(i), std::int64_t{1});
  return o;
}

// How the operator's rules and launches use tensor `input`: whether they refer to it, and whether they test its
// presence with has().
struct input_use {
  bool named = false, asked = false;
};
input_use use_of(const spirv::object& o, std::size_t input) {
  std::string name = "input" + std::to_string(input), question = "has(" + name + ")";
  input_use result;
  auto look = [&](std::string text) {
    std::erase(text, ' ');
    result.asked |= text.find(question) != std::string::npos;
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
      result.named |=
          at + name.size() == text.size() || !std::isdigit(static_cast<unsigned char>(text[at + name.size()]));
  };
  for (const spirv::input_restriction& r : o.restrictions) result.named |= r.input == input, look(r.type);
  for (const std::string& r : o.requirements) look(r);
  for (const spirv::result_rule& r : o.results) look(r.type), look(r.dims);
  for (const std::string& bytes : o.scratch) look(bytes);
  for (const spirv::kernel_launch& l : o.launches) {
    for (const auto* texts : {&l.count, &l.block})
      for (const std::string& text : *texts) look(text);
    look(l.shared_bytes);
    for (const spirv::parameter& p : l.parameters)
      result.named |= p.kind == spirv::parameter_kind::input && p.index == input, look(p.expression);
  }
  return result;
}

// Returns an absent input to which the operator refers without testing its presence.
std::optional<std::size_t> missing_input(const spirv::object& o, const std::vector<bool>& given) {
  for (std::size_t i = 0; i < given.size(); ++i)
    if (input_use use = given[i] ? input_use{} : use_of(o, i); use.named && !use.asked) return i;
  return std::nullopt;
}

bool fits_type(const spirv::object& o, const spirv::input_restriction& r, std::span<const shape> inputs) {
  return r.input < inputs.size() && inputs[r.input].type == spirv::evaluate_type(r.type, {inputs, {}, &o.attributes});
}
bool fits_types(const spirv::object& o, std::span<const shape> inputs) {
  return std::ranges::all_of(o.restrictions,
                             [&](const spirv::input_restriction& r) { return fits_type(o, r, inputs); });
}

// Returns true if a condition holds for these inputs. If a condition depends on open dimensions and no other operator
// has this name, returns true as well: check_operands() evaluates the condition again when the sizes are known.
bool holds(const std::string& condition, const spirv::expression_scope& scope, bool only) try {
  return spirv::evaluate_integer(condition, scope).value() != 0;
} catch (const error& e) {
  if (!only || e.kind() != error_kind::unsupported) throw;
  return true;
}

// Returns the reason why the operator does not match this node; empty if it matches. `only`: no other operator has
// this name.
std::string misfit(const node& n, const spirv::object& o, std::span<const shape> inputs, const std::vector<bool>& given,
                   bool only) {
  if (auto missing = missing_input(o, given)) return "input" + std::to_string(*missing) + " is missing";
  for (const spirv::input_restriction& r : o.restrictions)
    if (!fits_type(o, r, inputs)) return "input" + std::to_string(r.input) + " is not " + r.type;
  spirv::object here = with_attributes(n, o, given);
  for (const std::string& r : o.requirements)
    if (!holds(r, {inputs, {}, &here.attributes}, only)) return "'" + r + "' does not hold";
  return "";
}

// Creates the code object for an operator that already contains the node's attributes.
std::vector<value> add_object(node& n, const spirv::object& o, std::vector<value> inputs) {
  std::vector<shape> types;
  for (value v : inputs) types.push_back(v.type());
  std::vector<shape> outputs = spirv::infer(o, types);
  // Rules and arguments refer to tensors by number. Resolving them here detects missing tensors at import rather than
  // on the device.
  if (std::ranges::all_of(types, &shape::is_static) && std::ranges::all_of(outputs, &shape::is_static))
    spirv::resolve(o, types, outputs);
  content_hash payload = n.owner.state().result.add_kernel(spirv::serialize(o));
  value first = n.b.add(code_object::make(o.name, code_format::amdgcnspirv, payload, "", outputs), std::move(inputs));
  std::vector<value> results;
  for (std::uint32_t k = 0; k < outputs.size(); ++k) results.push_back(builder::output(first, k));
  return results;
}

}  // namespace

std::vector<const spirv::object*> custom_operators(const import_state& state, std::string_view domain,
                                                   std::string_view name) {
  std::vector<const spirv::object*> found;
  auto collect = [&](const std::vector<spirv::object>& operators) {
    for (const spirv::object& o : operators)
      if (o.domain == domain && o.name == name) found.push_back(&o);
  };
  if (state.options.custom_operators) collect(*state.options.custom_operators);
  if (found.empty() && !find_operator(domain, name)) collect(spirv::library());
  return found;
}

namespace {

// The floating type, other than f32, that a node of the standard wants from a kernel of the library: its `dtype`, or
// the type of its first input.
std::optional<element_type> other_float(const node& n, const std::vector<const spirv::object*>& candidates) {
  const auto& library = spirv::library();
  if (std::ranges::none_of(library, [&](const auto& o) { return &o == candidates.front() && o.domain.empty(); }))
    return {};
  const bool named = n.has_attribute("dtype");
  if (!named && !n.has(0)) return {};
  const element_type type = named ? element_type_of(n.integer("dtype", 0), "attribute 'dtype'") : n.type(0).type;
  return is_float(type) && type != element_type::f32 ? std::optional(type) : std::nullopt;
}

// The kernels of the library compute in f32.
std::vector<value> computed_in_f32(node& n, const std::vector<const spirv::object*>& candidates, element_type wanted) {
  auto in_f32 = [&](value v) { return v && is_float(v.type().type) ? n.b.to_type(v, element_type::f32) : v; };
  std::vector<value> inputs;
  for (value v : n.all()) inputs.push_back(in_f32(v));
  ::onnx::NodeProto proto = n.proto;
  for (auto& attribute : *proto.mutable_attribute())
    if (attribute.name() == "dtype") attribute.set_i(::onnx::TensorProto::FLOAT);
  node wide(n.owner, n.b, proto, n.opset, std::move(inputs));
  std::vector<value> results = import_custom(wide, candidates);
  for (value& v : results) v = n.b.to_type(v, wanted);
  return results;
}

}  // namespace

std::vector<value> import_custom(node& n, const std::vector<const spirv::object*>& candidates) {
  if (auto wanted = other_float(n, candidates)) return computed_in_f32(n, candidates, *wanted);
  // There are as many inputs as the node has, or as a candidate refers to. An omitted input becomes an empty tensor, if
  // the chosen candidate accepts that.
  std::size_t count = n.inputs();
  for (const spirv::object* o : candidates)
    for (const spirv::kernel_launch& l : o->launches)
      for (const spirv::parameter& p : l.parameters)
        if (p.kind == spirv::parameter_kind::input) count = std::max<std::size_t>(count, p.index + 1);
  std::vector<value> inputs(count);
  std::vector<shape> types(count, shape{element_type::f32, {0}});
  std::vector<bool> given(count);
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    given[i] = n.has(i);
    if (given[i]) inputs[i] = n.in(i), types[i] = n.type(i);
    if (i < n.inputs())
      text += (text.empty() ? "" : ", ") + (given[i] ? types[i].str() : "no input " + std::to_string(i));
  }
  const spirv::object* chosen = nullptr;
  std::string why;
  for (const spirv::object* o : candidates) {
    if (chosen) break;
    std::string reason = misfit(n, *o, types, given, candidates.size() == 1);
    if (reason.empty()) chosen = o;
    else if (why.find(reason) == std::string::npos) why += (why.empty() ? "" : "; ") + reason;
  }
  if (!chosen)
    refuse("the operator's kernels do not take " + (text.empty() ? "no inputs" : text) +
           " with these attributes: " + why);
  // Omit absent trailing inputs to which the operator does not refer.
  while (!given.empty() && !given.back() && !use_of(*chosen, given.size() - 1).named) given.pop_back();
  inputs.resize(given.size());
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!given[i]) inputs[i] = n.b.constant(literal(types[i], std::vector<std::byte>{}));
  return add_object(n, with_attributes(n, *chosen, given), std::move(inputs));
}

std::vector<value> import_kernel(node& n, std::string_view name, std::vector<value> inputs,
                                 const spirv::attribute_values& attributes) {
  std::vector<shape> types;
  for (value v : inputs) types.push_back(v.type());
  for (const spirv::object& each : spirv::library()) {
    if (each.domain != "kiln" || each.name != name || !fits_types(each, types)) continue;
    spirv::object o = each;
    for (auto& [key, value] : o.attributes)
      if (auto given = std::ranges::find(attributes, key, &spirv::attribute_values::value_type::first);
          given != attributes.end())
        value = given->second;
    return add_object(n, o, std::move(inputs));
  }
  refuse("no kernel of the library takes " + types.at(0).str());
}

}  // namespace kiln::onnx_import
