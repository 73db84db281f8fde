// Nodes whose operator comes from HIP C++ (spirv/object.hpp): one instruction, a code object in amdgcnspirv with the
// node's attributes inside.
#pragma once

#include <string_view>
#include <vector>

#include "aot/onnx/node.hpp"
#include "spirv/object.hpp"

namespace kiln::onnx_import {

struct import_state;

// The user's operators for this domain and name, in order (several differ in the types that they take), or else those
// of our library where the importer has no handler of its own.
std::vector<const spirv::object*> custom_operators(const import_state& state, std::string_view domain,
                                                   std::string_view name);

// Takes the first of `candidates` (not empty) whose types fit the inputs. Refuses where none does, and for attributes
// that none declares.
std::vector<value> import_custom(node& n, const std::vector<const spirv::object*>& candidates);

// A kernel of our library's domain "kiln" as a part of an operator. `attributes` replace the defaults. Refuses types
// that it has no kernel for.
std::vector<value> import_kernel(node& n, std::string_view name, std::vector<value> inputs,
                                 const spirv::attribute_values& attributes = {});

}  // namespace kiln::onnx_import
