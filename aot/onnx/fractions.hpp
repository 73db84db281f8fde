// Shape computations in floats: models compute sizes such as Ceil(height / 2.0) * 2.0. An element is a fraction of two
// dims where rounding in f32 does not matter: exact numbers, and quotients that are only rounded to integers. Otherwise
// the element is the steps that f32 must take, as in Floor(height * Min(800 / Min(height, width), 2.5)).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "aot/onnx/symbolic.hpp"

namespace kiln::onnx_import {

// Steps on f32 numbers that start from sizes.
struct real_number {
  real_steps steps;
  std::vector<dim> operands;
};

// over / under, where under is at least 1, or the value of `rounded` if that is set.
struct fraction {
  dim over, under = 1;
  std::optional<real_number> rounded = std::nullopt;
};
using known_fractions = std::vector<fraction>;

known_fractions fractions_of(const known_elements& elements);
// The elements of a small literal of floats; nullopt if one is not finite, or a double that is no small multiple of
// 2^-8.
std::optional<known_fractions> fractions_of(const literal& data);
// The elements as dims; nullopt if one is not known to be an integer.
std::optional<known_elements> integers_of(const known_fractions& fractions);

// floor(size * scale), computed in f32.
dim scaled_size(const dim& size, const fraction& scale);

// Returns nullopt if the result cannot be written as fractions. Never throws.
std::optional<known_fractions> evaluate_fractions(const operation& op, std::span<const shape> inputs,
                                                  std::span<const known_fractions> values, const shape& output,
                                                  const dim_facts& facts);

}  // namespace kiln::onnx_import
