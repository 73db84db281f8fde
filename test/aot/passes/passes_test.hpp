// Helpers for tests of passes: short ways to build modules, random inputs, and comparisons by structure and by numbers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "aot/passes/pass.hpp"
#include "ir/ops/all.hpp"
#include "ir/program.hpp"

namespace kiln::testing {

inline literal random_literal(const shape& type, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<double> values(static_cast<std::size_t>(type.element_count()));
  for (double& v : values)
    v = is_float(type.type) ? std::uniform_real_distribution<>(-2, 2)(generator) : static_cast<double>(generator() % 5);
  return literal::from_doubles(type, values);
}

// A module under construction: `p` names parameters, `w` makes random constants.
class builder {
 public:
  explicit builder(module& m) : m(m) {}
  value p(const std::string& name, std::vector<dim> dims, element_type type = element_type::f32) {
    return m.add_parameter(name, {type, std::move(dims)});
  }
  value w(std::vector<dim> dims, unsigned seed = 1) {
    return m.add_constant(random_literal({element_type::f32, std::move(dims)}, seed));
  }
  value c(double number, element_type type = element_type::f32) {
    return m.add_constant(literal::scalar(type, number));
  }
  value f(scalar_function function, std::vector<value> inputs) {
    return m.add(elementwise{function}, std::move(inputs));
  }
  // An elementwise function of two operands, the second stretched to the first's dims.
  value f(scalar_function function, value a, value b) { return f(function, std::vector{a, to(b, a.type().dims)}); }
  value to(value v, std::vector<dim> dims) {
    return v.type().dims == dims ? v : m.add(broadcast{std::move(dims)}, {v});
  }
  value t(value v, std::vector<std::int64_t> permutation) { return m.add(transpose{std::move(permutation)}, {v}); }
  value r(value v, std::vector<dim> dims) { return m.add(reshape{std::move(dims)}, {v}); }
  void out(std::vector<value> values) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < values.size(); ++i) names.push_back("y" + std::to_string(i));
    m.set_outputs(std::move(values), std::move(names));
  }
  module& m;
};

inline std::vector<literal> run(const program& p, unsigned seed = 7) {
  std::vector<literal> inputs;
  for (value v : p.main().parameters()) inputs.push_back(random_literal(v.type(), seed++));
  return evaluate(p.main(), inputs);
}

inline void expect_equal(const std::vector<literal>& expected, const std::vector<literal>& actual, double tolerance) {
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].type().str(), actual[i].type().str());
    auto e = expected[i].to_doubles(), a = actual[i].to_doubles();
    ASSERT_FALSE(e.empty());
    for (std::size_t k = 0; k < e.size(); ++k) {
      if (!std::isfinite(e[k])) {
        ASSERT_TRUE(std::isnan(e[k]) ? std::isnan(a[k]) : a[k] == e[k])
            << "output " << i << " element " << k << " is " << a[k];
        continue;
      }
      ASSERT_NEAR(e[k], a[k], tolerance * (1 + std::abs(e[k]))) << "output " << i << " element " << k;
    }
  }
}

// Applies the passes to the module that `build` makes, and checks that the numbers do not change. Returns the result,
// for checks of its structure.
inline program transformed(const std::function<void(builder&)>& build, const std::vector<pass>& passes,
                           double tolerance = 1e-5) {
  program p;
  builder b(p.main());
  build(b);
  p.validate();
  auto expected = run(p);
  run_passes(p, passes);
  p.validate();
  expect_equal(expected, run(p), tolerance);
  return p;
}

// Returns the text of a module that is built by hand, for comparison.
inline std::string text_of(const std::function<void(builder&)>& build) {
  program p;
  builder b(p.main());
  build(b);
  return p.main().str();
}

template <class Op>
std::size_t count(const module& m) {
  std::size_t found = 0;
  for (const instruction& i : m.instructions()) found += i.op().is<Op>();
  return found;
}

template <class Op>
const Op* only(const module& m) {
  for (const instruction& i : m.instructions())
    if (const Op* op = i.op().get_if<Op>()) return op;
  return nullptr;
}

}  // namespace kiln::testing
