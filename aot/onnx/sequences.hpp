// Sequences and optionals during an import. They are folded away: the importer knows the elements of each, so operators
// on them only rename values. A value of such a type is a placeholder, an unused constant of the module, and
// import_state has what it stands for. Operators refuse placeholders unless their row says otherwise.
#pragma once

#include <vector>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// An optional has one element, which may be a placeholder of a sequence, or none.
struct compound {
  bool is_optional = false;
  std::vector<value> elements;
};

struct import_state;

// Null for a tensor.
const compound* find_compound(const import_state& state, value v);
value add_compound(import_state& state, builder& b, compound c);

// Throws error{invalid_model} if input i is a placeholder: for inputs that must be tensors, of operators that take
// sequences elsewhere.
void refuse_compound(const node& n, std::size_t i);

// Replaces placeholders by their elements, in order and at any depth. `names` has one name for each value; the elements
// of a sequence NAME are NAME.0, NAME.1, ...
void flatten_compounds(const import_state& state, std::vector<value>& values, std::vector<std::string>& names);

// The elements of an input that is a sequence or an optional, as parameters of the module. The options say how many
// there are, and of which dims.
value add_compound_input(import_state& state, builder& b, const ::onnx::ValueInfoProto& info);

}  // namespace kiln::onnx_import
