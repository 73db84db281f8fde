// Vector comparisons, whose result is a mask of lanes.
#include <algorithm>
#include <limits>

#include "numbers.hpp"
#include "operations.hpp"

namespace emulation {

namespace {

// Bits of v_cmp_class's mask: signaling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf.
template <class T>
bool is_of_class(T x, std::uint32_t mask) {
  const bool negative = std::signbit(static_cast<double>(x));
  int bit = 0;
  if (x != x) return (mask & 3) != 0;
  const double magnitude = std::fabs(static_cast<double>(x));
  const double smallest = std::is_same_v<T, float>  ? 0x1p-126
                          : std::is_same_v<T, half> ? 0x1p-14
                                                    : std::numeric_limits<double>::min();
  if (std::isinf(magnitude)) bit = negative ? 2 : 9;
  else if (magnitude == 0) bit = negative ? 5 : 6;
  else if (magnitude < smallest) bit = negative ? 4 : 7;
  else bit = negative ? 3 : 8;
  return mask >> bit & 1;
}

}  // namespace

#define FLOAT_COMPARISONS(suffix, T)                                                    \
  {"v_cmp_lt_" suffix, compare<[](T a, T b) { return a < b; }>},                        \
      {"v_cmp_eq_" suffix, compare<[](T a, T b) { return a == b; }>},                   \
      {"v_cmp_le_" suffix, compare<[](T a, T b) { return a <= b; }>},                   \
      {"v_cmp_gt_" suffix, compare<[](T a, T b) { return a > b; }>},                    \
      {"v_cmp_lg_" suffix, compare<[](T a, T b) { return a < b || a > b; }>},           \
      {"v_cmp_ge_" suffix, compare<[](T a, T b) { return a >= b; }>},                   \
      {"v_cmp_o_" suffix, compare<[](T a, T b) { return a == a && b == b; }>},          \
      {"v_cmp_u_" suffix, compare<[](T a, T b) { return a != a || b != b; }>},          \
      {"v_cmp_nge_" suffix, compare<[](T a, T b) { return !(a >= b); }>},               \
      {"v_cmp_nlg_" suffix, compare<[](T a, T b) { return !(a < b || a > b); }>},       \
      {"v_cmp_ngt_" suffix, compare<[](T a, T b) { return !(a > b); }>},                \
      {"v_cmp_nle_" suffix, compare<[](T a, T b) { return !(a <= b); }>},               \
      {"v_cmp_neq_" suffix, compare<[](T a, T b) { return a != b; }>},                  \
      {"v_cmp_nlt_" suffix, compare<[](T a, T b) { return !(a < b); }>},                \
      {"v_cmpx_lt_" suffix, compare_exec<[](T a, T b) { return a < b; }>},              \
      {"v_cmpx_eq_" suffix, compare_exec<[](T a, T b) { return a == b; }>},             \
      {"v_cmpx_le_" suffix, compare_exec<[](T a, T b) { return a <= b; }>},             \
      {"v_cmpx_gt_" suffix, compare_exec<[](T a, T b) { return a > b; }>},              \
      {"v_cmpx_lg_" suffix, compare_exec<[](T a, T b) { return a < b || a > b; }>},     \
      {"v_cmpx_ge_" suffix, compare_exec<[](T a, T b) { return a >= b; }>},             \
      {"v_cmpx_o_" suffix, compare_exec<[](T a, T b) { return a == a && b == b; }>},    \
      {"v_cmpx_u_" suffix, compare_exec<[](T a, T b) { return a != a || b != b; }>},    \
      {"v_cmpx_nge_" suffix, compare_exec<[](T a, T b) { return !(a >= b); }>},         \
      {"v_cmpx_nlg_" suffix, compare_exec<[](T a, T b) { return !(a < b || a > b); }>}, \
      {"v_cmpx_ngt_" suffix, compare_exec<[](T a, T b) { return !(a > b); }>},          \
      {"v_cmpx_nle_" suffix, compare_exec<[](T a, T b) { return !(a <= b); }>},         \
      {"v_cmpx_neq_" suffix, compare_exec<[](T a, T b) { return a != b; }>}, {          \
    "v_cmpx_nlt_" suffix, compare_exec<[](T a, T b) { return !(a < b); }>               \
  }

#define INTEGER_COMPARISONS(suffix, T)                                        \
  {"v_cmp_lt_" suffix, compare<[](T a, T b) { return a < b; }>},              \
      {"v_cmp_eq_" suffix, compare<[](T a, T b) { return a == b; }>},         \
      {"v_cmp_le_" suffix, compare<[](T a, T b) { return a <= b; }>},         \
      {"v_cmp_gt_" suffix, compare<[](T a, T b) { return a > b; }>},          \
      {"v_cmp_ne_" suffix, compare<[](T a, T b) { return a != b; }>},         \
      {"v_cmp_ge_" suffix, compare<[](T a, T b) { return a >= b; }>},         \
      {"v_cmpx_lt_" suffix, compare_exec<[](T a, T b) { return a < b; }>},    \
      {"v_cmpx_eq_" suffix, compare_exec<[](T a, T b) { return a == b; }>},   \
      {"v_cmpx_le_" suffix, compare_exec<[](T a, T b) { return a <= b; }>},   \
      {"v_cmpx_gt_" suffix, compare_exec<[](T a, T b) { return a > b; }>},    \
      {"v_cmpx_ne_" suffix, compare_exec<[](T a, T b) { return a != b; }>}, { \
    "v_cmpx_ge_" suffix, compare_exec<[](T a, T b) { return a >= b; }>        \
  }

const std::vector<operation> comparisons = {
    {"v_cmp_class_f32", compare<[](float a, std::uint32_t m) { return is_of_class(a, m); }>},
    {"v_cmp_class_f16", compare<[](half a, std::uint32_t m) { return is_of_class(a, m); }>},
    {"v_cmp_class_f64", compare<[](double a, std::uint32_t m) { return is_of_class(a, m); }>},
    {"v_cmpx_class_f32", compare_exec<[](float a, std::uint32_t m) { return is_of_class(a, m); }>},
    FLOAT_COMPARISONS("f32", float),
    FLOAT_COMPARISONS("f16", half),
    FLOAT_COMPARISONS("f64", double),
    INTEGER_COMPARISONS("i16", std::int16_t),
    INTEGER_COMPARISONS("u16", std::uint16_t),
    INTEGER_COMPARISONS("i32", std::int32_t),
    INTEGER_COMPARISONS("u32", std::uint32_t),
    INTEGER_COMPARISONS("i64", std::int64_t),
    INTEGER_COMPARISONS("u64", std::uint64_t),
};

}  // namespace emulation
