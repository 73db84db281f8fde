#include "ir/ops/bounded.hpp"

#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

const literal six = tensor({2, 3}, {1, 2, 3, 4, 5, 6});

literal part(std::int64_t axis, std::int64_t count) {
  return bounded{axis}.evaluate(std::vector{six, literal::from_int64({count})})[0];
}

TEST(bounded, keeps_the_shape_and_gives_the_part_that_is_meant) {
  EXPECT_EQ((bounded{1}.infer(std::vector<shape>{six.type(), shape_of(element_type::i64, {1})})[0].str()), "f32[2, 3]");
  expect_values(part(1, 2), {2, 2}, {1, 2, 4, 5});
  expect_values(part(0, 1), {1, 3}, {1, 2, 3});
  expect_values(part(0, 0), {0, 3}, {});
  expect_error(error_kind::invalid_model, "the axis is not one of the data",
               [] { bounded{2}.infer(std::vector<shape>{six.type(), shape_of(element_type::i64, {1})}); });
  expect_error(error_kind::invalid_model, "the count must be i64[1]",
               [] { bounded{0}.infer(std::vector<shape>{six.type(), six.type()}); });
  expect_error(error_kind::invalid_model, "a count of 4 along axis 1 of f32[2, 3]", [] { first_of(six, 1, 4); });
}

}  // namespace
}  // namespace kiln::testing
