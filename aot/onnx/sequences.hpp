// Sequences and optionals during an import. They do not exist in the program: the importer tracks the elements of each,
// so operators on them only rename values. A value of such a type is represented by a placeholder, which is an unused
// constant of the module; import_state maps the placeholder to its elements. Operators refuse placeholders unless their
// row in the operator table allows them.
#pragma once

#include <vector>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// A sequence or an optional. An optional has no element or one, which may be a placeholder of a sequence. A sequence
// whose length is not known at import has no list of elements: they have one shape and lie along the first axis of
// `stacked`, or they are known only as `joined` along the axis `along`: each has `length` elements there, but for the
// last, which has the rest; 0 if they have different lengths.
struct compound {
  bool is_optional = false;
  std::vector<value> elements = {};
  value stacked = {};
  value joined = {};
  std::int64_t along = 0, length = 0;
};

struct import_state;

// Returns the sequence or optional that v is a placeholder of, or null for a tensor.
const compound* find_compound(const import_state& state, value v);
value add_compound(import_state& state, builder& b, compound c);

// Throws error{invalid_model} if input i is a placeholder. Operators that accept sequences use it for inputs that must
// be tensors.
void refuse_compound(const node& n, std::size_t i);

// Replaces placeholders by their elements, in order, at any depth of nesting. `names` has one name per value; the
// elements of a sequence NAME are named NAME.0, NAME.1, ...
void flatten_compounds(const import_state& state, std::vector<value>& values, std::vector<std::string>& names);

// Adds the elements of a sequence or optional input as parameters of the module. The options give their number and
// dims.
value add_compound_input(import_state& state, builder& b, const ::onnx::ValueInfoProto& info);

}  // namespace kiln::onnx_import
