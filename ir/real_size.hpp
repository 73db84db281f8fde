// Sizes that a model computes in floats, such as floor(f32(h) * min(800 / min(h, w), 1333 / max(h, w))). Rounding in
// f32 decides them, so the steps are kept and repeated exactly. A value type.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// One step of a stack machine on f32 numbers.
struct real_step {
  // size: pushes an operand, rounded to f32. number: pushes a constant. From add on: replaces the last two numbers by
  // one. From floor on: replaces the last number. round: to the nearest integer, half to even.
  enum class kind : std::uint8_t { size, number, add, sub, mul, div, minimum, maximum, floor, ceil, round, sqrt };
  kind is = kind::number;
  std::uint32_t operand = 0;
  float value = 0;
};

// The result is floor(x) of the one number that the steps leave.
using real_steps = std::vector<real_step>;

// The value for given operands; nullopt if it does not fit 62 bits.
std::optional<std::int64_t> floor_of(std::span<const real_step> steps, std::span<const std::int64_t> operands);

// Bounds of a number, inclusive; infinite if unknown.
struct real_range {
  float low, high;
};
// Bounds of the number before it is rounded down; nullopt if none are known.
std::optional<real_range> range_of(std::span<const real_step> steps, std::span<const real_range> operands);

// "d0" for a size, "c" and the 8 hexadecimal digits of its bits for a number, and one of "+-*/<>funs" for the others.
std::string text_of(std::span<const real_step> steps);
// Inverse of text_of. Returns nullopt unless the steps leave one number and use operands below `operands` only.
std::optional<real_steps> parse_steps(std::string_view text, std::size_t operands);

}  // namespace kiln
