#include "ir/real_size.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace kiln {
namespace {

using kind = real_step::kind;

constexpr std::size_t most_steps = 256;
constexpr std::string_view signs = "+-*/<>funs";  // in the order of real_step::kind, from add on
constexpr float infinity = std::numeric_limits<float>::infinity();

bool is_unary(kind is) { return is >= kind::floor; }

// `b` is not used by functions of one number.
float apply(kind is, float a, float b) {
  switch (is) {
    case kind::add: return a + b;
    case kind::sub: return a - b;
    case kind::mul: return a * b;
    case kind::div: return a / b;
    case kind::minimum: return std::min(a, b);
    case kind::maximum: return std::max(a, b);
    case kind::floor: return std::floor(a);
    case kind::ceil: return std::ceil(a);
    case kind::round: return std::nearbyint(a);
    default: return std::sqrt(a);
  }
}

// Rounding is monotonic, so the bounds of a result are the results of bounds. Products, quotients and roots need
// operands that are not negative.
std::optional<real_range> apply(kind is, const real_range& a, const real_range& b) {
  real_range result{};
  switch (is) {
    case kind::sub: result = {a.low - b.high, a.high - b.low}; break;
    case kind::mul:
      if (a.low < 0 || b.low < 0) return std::nullopt;
      result = {a.low * b.low, a.high * b.high};
      break;
    case kind::div:
      if (a.low < 0 || b.low < 0) return std::nullopt;
      result = {b.high == infinity ? 0 : a.low / b.high, b.low > 0 ? a.high / b.low : infinity};
      break;
    case kind::sqrt:
      if (a.low < 0) return std::nullopt;
      [[fallthrough]];
    default: result = {apply(is, a.low, b.low), apply(is, a.high, b.high)};
  }
  if (std::isnan(result.low)) return std::nullopt;
  if (std::isnan(result.high)) result.high = infinity;
  return result;
}

// Runs the steps on any kind of number. `combine` returns nullopt if there is no result.
template <class Number, class Push, class Combine>
std::optional<Number> run(std::span<const real_step> steps, Push push, Combine combine) {
  std::vector<Number> stack;
  for (const real_step& step : steps) {
    if (step.is == kind::size || step.is == kind::number) {
      stack.push_back(push(step));
      continue;
    }
    if (stack.size() < (is_unary(step.is) ? 1 : 2)) return std::nullopt;
    const Number right = stack.back();
    if (!is_unary(step.is)) stack.pop_back();
    const std::optional<Number> made = combine(step.is, stack.back(), right);
    if (!made) return std::nullopt;
    stack.back() = *made;
  }
  return stack.size() == 1 ? std::optional(stack[0]) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> floor_of(std::span<const real_step> steps, std::span<const std::int64_t> operands) {
  constexpr float most = 0x1p62f;
  const auto result = run<float>(
      steps, [&](const real_step& s) { return s.is == kind::size ? static_cast<float>(operands[s.operand]) : s.value; },
      [](kind is, float a, float b) { return std::optional(apply(is, a, b)); });
  if (!result || !(std::abs(*result) < most)) return std::nullopt;
  return static_cast<std::int64_t>(std::floor(*result));
}

std::optional<real_range> range_of(std::span<const real_step> steps, std::span<const real_range> operands) {
  return run<real_range>(
      steps,
      [&](const real_step& s) { return s.is == kind::size ? operands[s.operand] : real_range{s.value, s.value}; },
      [](kind is, const real_range& a, const real_range& b) { return apply(is, a, b); });
}

std::string text_of(std::span<const real_step> steps) {
  std::string text;
  for (const real_step& step : steps) {
    if (step.is == kind::size) {
      text += 'd' + std::to_string(step.operand);
    } else if (step.is == kind::number) {
      char digits[8];
      const auto bits = std::bit_cast<std::uint32_t>(step.value);
      for (int i = 0; i < 8; ++i) digits[i] = "0123456789abcdef"[bits >> (28 - 4 * i) & 15];
      text += 'c' + std::string(digits, 8);
    } else {
      text += signs[static_cast<std::size_t>(step.is) - static_cast<std::size_t>(kind::add)];
    }
  }
  return text;
}

std::optional<real_steps> parse_steps(std::string_view text, std::size_t operands) {
  real_steps steps;
  std::size_t depth = 0;
  auto take = [&](std::uint32_t& number, std::string_view digits, int base) -> std::size_t {
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
    return code == std::errc{} ? static_cast<std::size_t>(end - digits.data()) : 0;
  };
  while (!text.empty()) {
    if (steps.size() == most_steps) return std::nullopt;
    const char c = text[0];
    text.remove_prefix(1);
    real_step step;
    std::uint32_t number = 0;
    if (c == 'd' || c == 'c') {
      const std::size_t used = take(number, c == 'd' ? text : text.substr(0, 8), c == 'd' ? 10 : 16);
      if (used == 0 || (c == 'c' && used != 8) || (c == 'd' && number >= operands)) return std::nullopt;
      text.remove_prefix(used);
      step = c == 'd' ? real_step{kind::size, number, 0} : real_step{kind::number, 0, std::bit_cast<float>(number)};
      ++depth;
    } else {
      const std::size_t at = signs.find(c);
      if (at == std::string_view::npos) return std::nullopt;
      step.is = static_cast<kind>(at + static_cast<std::size_t>(kind::add));
      const std::size_t used = is_unary(step.is) ? 1 : 2;
      if (depth < used) return std::nullopt;
      depth -= used - 1;
    }
    steps.push_back(step);
  }
  return depth == 1 ? std::optional(std::move(steps)) : std::nullopt;
}

}  // namespace kiln
