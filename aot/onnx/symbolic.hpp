// Partial evaluation of shape computations: what an operation gives where its inputs are small tensors whose elements
// are known as dims ("batch", "2*seq", 64), though they may not be constants. Booleans count as 0 and 1.
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

// Symbols that begin so are counts that depend on data (counted_dims.hpp), and may be zero.
inline constexpr std::string_view count_prefix = "counted.";

// The elements of a literal where all of them are integers and there are few; floats with integral values count.
std::optional<known_elements> elements_of(const literal& data);

// nullopt where the result cannot be written as dims. Never throws. `facts` decide comparisons.
std::optional<known_elements> evaluate_known(const operation& op, std::span<const shape> inputs,
                                             std::span<const known_elements> values, const shape& output,
                                             const dim_facts& facts);

}  // namespace kiln::onnx_import
