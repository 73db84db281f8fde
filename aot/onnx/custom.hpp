// Imports nodes whose operator is implemented in HIP C++ (spirv/object.hpp). Such a node becomes one instruction: a
// code object in amdgcnspirv that contains the node's attributes.
#pragma once

#include <string_view>
#include <vector>

#include "aot/onnx/node.hpp"
#include "spirv/object.hpp"

namespace kiln::onnx_import {

struct import_state;

// Returns the user's operators for this domain and name, in order (they may differ in the types that they accept). If
// there are none and the importer has no handler, returns those of our library.
std::vector<const spirv::object*> custom_operators(const import_state& state, std::string_view domain,
                                                   std::string_view name);

// Imports the node with the first of `candidates` (not empty) whose types match the inputs. Refuses the node if none
// matches, or if it has an attribute that no candidate declares.
std::vector<value> import_custom(node& n, const std::vector<const spirv::object*>& candidates);

// Adds a kernel from the "kiln" domain of our library, as a part of an operator. `attributes` override the defaults.
// Refuses types for which there is no kernel.
std::vector<value> import_kernel(node& n, std::string_view name, std::vector<value> inputs,
                                 const spirv::attribute_values& attributes = {});

}  // namespace kiln::onnx_import
