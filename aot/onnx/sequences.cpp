#include "aot/onnx/sequences.hpp"

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {
namespace {

void flatten(const import_state& state, value v, const std::string& name, std::vector<value>& values,
             std::vector<std::string>& names) {
  const compound* c = find_compound(state, v);
  if (!c) {
    values.push_back(v);
    names.push_back(name);
    return;
  }
  if (c->stacked || c->joined)
    refuse("output '" + name + "' is a sequence whose length is not known at import; join it with ConcatFromSequence");
  for (std::size_t i = 0; i < c->elements.size(); ++i)
    flatten(state, c->elements[i], c->is_optional ? name : name + "." + std::to_string(i), values, names);
}

// Strips all sequence and optional types and returns the tensor type of the elements.
const ::onnx::TypeProto& element_of(const ::onnx::TypeProto& type, const std::string& what) {
  if (type.has_sequence_type()) return element_of(type.sequence_type().elem_type(), what);
  if (type.has_optional_type()) return element_of(type.optional_type().elem_type(), what);
  if (!type.has_tensor_type()) refuse(what + " has elements that are not tensors; maps are not supported");
  return type;
}

}  // namespace

const compound* find_compound(const import_state& state, value v) {
  auto found = state.compounds.find(v);
  return found == state.compounds.end() ? nullptr : &found->second;
}

void refuse_compound(const node& n, std::size_t i) {
  if (n.has(i) && find_compound(n.owner.state(), n.in(i)))
    invalid("input " + std::to_string(i) + " is a sequence or an optional, not a tensor");
}

value add_compound(import_state& state, builder& b, compound c) {
  // Do not use builder::scalar: it returns the same constant for equal scalars, but each placeholder must be distinct.
  value placeholder = b.target().add_constant(literal::scalar(element_type::boolean, 0));
  state.compounds.emplace(placeholder, std::move(c));
  return placeholder;
}

void flatten_compounds(const import_state& state, std::vector<value>& values, std::vector<std::string>& names) {
  const std::vector<value> given = std::move(values);
  const std::vector<std::string> given_names = std::move(names);
  values.clear(), names.clear();
  for (std::size_t i = 0; i < given.size(); ++i) flatten(state, given[i], given_names[i], values, names);
}

value add_compound_input(import_state& state, builder& b, const ::onnx::ValueInfoProto& info) {
  const std::string what = "input '" + info.name() + "'";
  const ::onnx::TypeProto& type = info.type();
  const bool is_optional = type.has_optional_type(),
             is_sequence = (is_optional ? type.optional_type().elem_type() : type).has_sequence_type();
  if (!is_optional && !is_sequence) refuse(what + " is a map; maps are not supported");
  auto given = state.options.sequences.find(info.name());
  if (given == state.options.sequences.end())
    refuse(what + " is " + (is_optional ? "an optional" : "a sequence") +
           "; give the dimensions of its elements with --sequence " + info.name() +
           "=[2,3][2,5], or =none for an optional without value");
  if (!given->second) {
    if (!is_optional) refuse(what + " is a sequence, not an optional: it may be empty, but not missing");
    return add_compound(state, b, {true, {}});
  }
  const element_type element = element_type_of(element_of(type, what).tensor_type().elem_type(), what);
  if (!is_sequence && given->second->size() != 1)
    throw error(error_kind::usage, "--sequence " + info.name() + ": an optional tensor has one element");
  compound sequence;
  for (std::size_t i = 0; i < given->second->size(); ++i) {
    const auto& dims = (*given->second)[i];
    check_rank(static_cast<int>(dims.size()), what);
    sequence.elements.push_back(b.target().add_parameter(
        is_sequence ? info.name() + "." + std::to_string(i) : info.name(), {element, {dims.begin(), dims.end()}}));
  }
  if (!is_sequence) return add_compound(state, b, {true, std::move(sequence.elements)});
  value made = add_compound(state, b, std::move(sequence));
  return is_optional ? add_compound(state, b, {true, {made}}) : made;
}

}  // namespace kiln::onnx_import
