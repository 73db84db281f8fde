// Random expressions with random values: the canonical form must evaluate to the result of the arithmetic, and bounds
// must hold. KILN_TEST_ROUNDS=1000000 makes more of them than the usual 3000 (some minutes).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "ir/dim_facts.hpp"
#include "ir/error.hpp"

namespace {

using namespace kiln;

constexpr int symbols = 3;
const std::string names[symbols]{"a", "b", "c"};

struct sample {
  dim expression;
  std::vector<std::int64_t> values;  // by case
};

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

class expressions {
 public:
  expressions(std::mt19937& random, const std::vector<dim_bindings>& cases) : random_(random), cases_(cases) {}

  sample any(int depth) {
    int choice = below(depth == 0 ? 3 : 12);
    if (choice < 1) return number(below(40) - 12);
    if (choice < 3) return symbol(names[below(symbols)]);
    sample x = any(depth - 1);
    if (choice == 3)
      return joined(x, number(below(9) + 1), [](const dim& p, const dim& q) { return p / q; }, floor_quotient);
    sample y = any(depth - 1);
    if (choice < 6)
      return joined(x, y, [](const dim& p, const dim& q) { return p + q; }, [](auto p, auto q) { return p + q; });
    if (choice < 8)
      return joined(x, y, [](const dim& p, const dim& q) { return p - q; }, [](auto p, auto q) { return p - q; });
    if (choice < 9)
      return joined(x, y, [](const dim& p, const dim& q) { return p * q; }, [](auto p, auto q) { return p * q; });
    if (choice < 10) return joined(x, y, dim::min, [](auto p, auto q) { return std::min(p, q); });
    if (choice < 11) return joined(x, y, dim::max, [](auto p, auto q) { return std::max(p, q); });
    sample divisor = joined(
        symbol(names[below(symbols)]), number(below(3) + 1), [](const dim& p, const dim& q) { return p + q; },
        [](auto p, auto q) { return p + q; });
    return joined(
        joined(
            x, divisor, [](const dim& p, const dim& q) { return p * q; }, [](auto p, auto q) { return p * q; }),
        divisor, [](const dim& p, const dim& q) { return p / q; }, floor_quotient);
  }

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  sample number(std::int64_t value) { return {value, std::vector<std::int64_t>(cases_.size(), value)}; }
  sample symbol(const std::string& name) {
    sample result{dim::symbol(name), {}};
    for (const auto& bindings : cases_) result.values.push_back(bindings.at(name));
    return result;
  }
  template <class Symbolic, class Numeric>
  sample joined(const sample& x, const sample& y, Symbolic symbolic, Numeric numeric) {
    sample result{symbolic(x.expression, y.expression), {}};
    for (std::size_t i = 0; i < cases_.size(); ++i) result.values.push_back(numeric(x.values[i], y.values[i]));
    return result;
  }

  std::mt19937& random_;
  const std::vector<dim_bindings>& cases_;
};

TEST(dim_property, canonical_forms_evaluate_to_what_the_arithmetic_says_and_stay_within_their_bounds) {
  std::mt19937 random(20);
  int bounded = 0, decided = 0;
  const char* wanted = std::getenv("KILN_TEST_ROUNDS");
  const int rounds = wanted ? std::atoi(wanted) : 3000;
  for (int round = 0; round < rounds; ++round) {
    dim_facts facts;
    std::vector<dim_bindings> cases(6);
    for (const std::string& name : names) {
      std::int64_t least = std::uniform_int_distribution<int>(0, 3)(random),
                   most = least + std::uniform_int_distribution<int>(0, 30)(random);
      facts.set_range(name, least, round % 2 ? INT64_MAX : most);
      for (auto& bindings : cases) bindings[name] = std::uniform_int_distribution<std::int64_t>(least, most)(random);
    }
    expressions make(random, cases);
    sample x, y;
    try {
      x = make.any(3), y = make.any(2);
    } catch (const error&) {  // too many terms, or too long
      continue;
    }
    EXPECT_EQ(dim::parse(x.expression.str()), x.expression) << x.expression.str();
    auto low = facts.lower(x.expression), high = facts.upper(x.expression);
    auto order = facts.order(x.expression, y.expression);
    bounded += low || high;
    decided += order && !(x.expression - y.expression).is_static();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      ASSERT_EQ(x.expression.substitute(cases[i]), dim(x.values[i])) << x.expression.str();
      if (low) {
        ASSERT_LE(*low, x.values[i]) << x.expression.str();
      }
      if (high) {
        ASSERT_GE(*high, x.values[i]) << x.expression.str();
      }
      if (order) {
        ASSERT_EQ(*order, (x.values[i] > y.values[i]) - (x.values[i] < y.values[i]))
            << x.expression.str() << " and " << y.expression.str();
      }
      ASSERT_EQ(facts.min(x.expression, y.expression).substitute(cases[i]), dim(std::min(x.values[i], y.values[i])));
      if (dim quotient; divides_exactly(x.expression, y.expression, quotient)) {
        ASSERT_EQ(quotient.substitute(cases[i]) * dim(y.values[i]), dim(x.values[i]));
      }
    }
  }
  EXPECT_GT(bounded, rounds / 2);
  EXPECT_GT(decided, rounds / 30);
}

}  // namespace
