// Shape computations in floats: models compute sizes such as Ceil(height / 2.0) * 2.0. An element is a fraction of two
// dims. The results must be those of f32, so an inexact quotient may be rounded to an integer and nothing else.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "aot/onnx/symbolic.hpp"

namespace kiln::onnx_import {

// over / under, where under is at least 1.
struct fraction {
  dim over, under = 1;
};
using known_fractions = std::vector<fraction>;

known_fractions fractions_of(const known_elements& elements);
// The elements of a small literal of floats; nullopt if one is not a small multiple of 2^-8.
std::optional<known_fractions> fractions_of(const literal& data);
// The elements as dims; nullopt if one is not known to be an integer.
std::optional<known_elements> integers_of(const known_fractions& fractions);

// Returns nullopt if the result cannot be written as fractions. Never throws.
std::optional<known_fractions> evaluate_fractions(const operation& op, std::span<const shape> inputs,
                                                  std::span<const known_fractions> values, const shape& output,
                                                  const dim_facts& facts);

}  // namespace kiln::onnx_import
