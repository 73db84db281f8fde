#include "tools/quantizer_steps.hpp"

#include <gtest/gtest.h>

#include "ir/ops/all.hpp"

namespace kiln::tools {
namespace {

// y = function(x) * 100, of three numbers.
program rounding(scalar_function function) {
  program p;
  module& m = p.main();
  const shape type{element_type::f32, {3}};
  value factor = m.add_constant(literal::scalar(element_type::f32, 100));
  value rounded = m.add(elementwise{function}, {m.add_parameter("x", type)});
  m.set_outputs({m.add(elementwise{scalar_function::mul}, {rounded, m.add(broadcast{{3}}, {factor})})}, {"y"});
  return p;
}

literal numbers(std::vector<double> values) { return literal::from_doubles({element_type::f32, {3}}, values); }

comparison compared(scalar_function function, std::vector<double> x, std::vector<double> got) {
  const program p = rounding(function);
  const std::vector<literal> inputs{numbers(std::move(x))}, outputs{numbers(std::move(got))};
  const kernel_runner none = [](const instruction&, std::span<const literal>) { return std::vector<literal>{}; };
  return compare_with_steps(outputs, evaluate(p.main(), inputs), exactness::own_types, moved_program(p, inputs, none))
      .at(0);
}

TEST(quantizer_steps, passes_a_number_between_two_steps_that_went_to_the_other) {
  const comparison found = compared(scalar_function::round, {100, 60.49999, -80}, {10000, 6100, -8000});
  EXPECT_TRUE(found.ok) << found.relative_norm;
  EXPECT_GT(found.tolerance, found.relative_norm);
  EXPECT_EQ(found.reason, "");
}

TEST(quantizer_steps, refuses_another_step_where_none_is_near) {
  EXPECT_FALSE(compared(scalar_function::round, {100, 60.4, -80}, {10000, 6100, -8000}).ok);
}

TEST(quantizer_steps, refuses_more_than_steps_explain) {
  EXPECT_FALSE(compared(scalar_function::round, {100, 60.49999, -80}, {10000, 7000, -8000}).ok);
}

TEST(quantizer_steps, changes_nothing_where_no_number_is_rounded) {
  const comparison found = compared(scalar_function::neg, {-100, -60.5, 80}, {10000, 6080, -8000});
  EXPECT_FALSE(found.ok);
  EXPECT_EQ(found.tolerance, 1e-4);
}

TEST(quantizer_steps, leaves_the_tolerance_where_an_output_is_within_it) {
  EXPECT_EQ(compared(scalar_function::round, {100, 60.49999, -80}, {10000, 6000, -8000}).tolerance, 1e-4);
}

}  // namespace
}  // namespace kiln::tools
