// Reference implementations of the kernels whose result size depends on data. They return the largest result, padded
// like the kernels' result, and the count. Internal to spirv/library.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "ir/error.hpp"
#include "ir/literal.hpp"
#include "spirv/object.hpp"

namespace kiln::spirv {

// Throws error{corrupted} if the operator has no attribute with this name and type.
template <class T>
T attribute_of(const object& o, std::string_view name) {
  auto found = std::ranges::find(o.attributes, name, &std::pair<std::string, attribute_value>::first);
  const T* value = found == o.attributes.end() ? nullptr : std::get_if<T>(&found->second);
  if (!value)
    throw error(error_kind::corrupted, "operator " + o.name + " has no such attribute '" + std::string(name) + "'");
  return *value;
}

std::vector<literal> non_zero_reference(const object& o, std::span<const literal> inputs,
                                        std::span<const shape> outputs);
std::vector<literal> unique_reference(const object& o, std::span<const literal> inputs, std::span<const shape> outputs);
std::vector<literal> non_max_suppression_reference(const object& o, std::span<const literal> inputs,
                                                   std::span<const shape> outputs);
std::vector<literal> dynamic_time_warping_reference(const object& o, std::span<const literal> inputs,
                                                    std::span<const shape> outputs);

}  // namespace kiln::spirv
