// Partial evaluation of shape computations: computes the result of an operation whose inputs are small tensors with
// elements known as dims ("batch", "2*seq", 64). The inputs need not be constants. Booleans count as 0 and 1.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/dim_facts.hpp"
#include "ir/operation.hpp"

namespace kiln::onnx_import {

using known_elements = std::vector<dim>;

inline constexpr std::int64_t max_known_elements = 1024;

// Prefix of symbols that stand for data-dependent counts (bounded_dims.hpp). They may be zero.
inline constexpr std::string_view count_prefix = "counted.";

// The elements of a literal, if it is small and all elements are integers. Floats with integral values count.
std::optional<known_elements> elements_of(const literal& data);

// Returns nullopt if the result cannot be written as dims. Never throws. `facts` are used to decide comparisons.
std::optional<known_elements> evaluate_known(const operation& op, std::span<const shape> inputs,
                                             std::span<const known_elements> values, const shape& output,
                                             const dim_facts& facts);

}  // namespace kiln::onnx_import
