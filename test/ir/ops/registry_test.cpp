#include <algorithm>

#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

TEST(registry, makes_every_name_it_lists) {
  auto names = operation_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(names.size(), 36 + scalar_function_table.size());
  EXPECT_EQ(std::count(names.begin(), names.end(), "constant"), 0);
  for (auto name : names) {
    operation made = make_operation(name, {});
    EXPECT_EQ(made.name(), name);
    EXPECT_EQ(make_operation(name, made.attributes()), made) << name;  // attributes read back
  }
}

TEST(registry, sets_attributes_and_keeps_defaults) {
  operation made = make_operation("dot", {{"transpose_b", true}, {"type", element_type::bf16}});
  const dot* op = made.get_if<dot>();
  ASSERT_NE(op, nullptr);
  EXPECT_FALSE(op->transpose_a);
  EXPECT_TRUE(op->transpose_b);
  EXPECT_EQ(op->type, element_type::bf16);
  operation padding =
      make_operation("pad", {{"mode", std::string("reflect")}, {"before", std::vector<std::int64_t>{1}}});
  ASSERT_TRUE(padding.is<pad>());
  EXPECT_EQ(padding.get_if<pad>()->mode, pad_mode::reflect);
  EXPECT_EQ(padding.get_if<pad>()->before, (std::vector<std::int64_t>{1}));
}

TEST(registry, finds_elementwise_operations_by_function) {
  EXPECT_EQ(make_operation("sigmoid", {}).get_if<elementwise>()->function, scalar_function::sigmoid);
  EXPECT_EQ(make_operation("mul", {{"function", std::string("mul")}}).get_if<elementwise>()->function,
            scalar_function::mul);
  expect_error(error_kind::corrupted, "operation mul claims to be add",
               [] { make_operation("mul", {{"function", std::string("add")}}); });
}

TEST(registry, refuses_by_name) {
  expect_error(error_kind::unsupported, "unknown operation \"frobnicate\"", [] { make_operation("frobnicate", {}); });
  expect_error(error_kind::unsupported, "unknown operation \"constant\"", [] { make_operation("constant", {}); });
  expect_error(error_kind::unsupported, "operation softmax has no attribute \"temperature\"",
               [] { make_operation("softmax", {{"temperature", 1.0}}); });
  expect_error(error_kind::corrupted, "axis", [] { make_operation("softmax", {{"axis", 1.0}}); });
  expect_error(error_kind::corrupted, "given an attribute twice",
               [] { make_operation("softmax", {{"axis", std::int64_t(1)}, {"axis", std::int64_t(1)}}); });
}

TEST(structure, bodies_are_the_modules_business) {
  expect_error(error_kind::internal, "if does not know its bodies", [] { if_else{}.infer({}); });
  expect_error(error_kind::internal, "loop does not know its bodies", [] { loop{}.evaluate({}); });
  expect_error(error_kind::internal, "parameter x has no value",
               [] { parameter{"x", element_type::f32, {}}.evaluate({}); });
  EXPECT_EQ((parameter{"x", element_type::f16, {dim::symbol("batch"), 3}}.infer({})[0].str()), "f16[batch, 3]");
  literal data = tensor({2}, {1, 2});
  EXPECT_EQ(constant{data}.infer({})[0].str(), "f32[2]");
  EXPECT_EQ(run(constant{data}, {}), data);
}

}  // namespace
}  // namespace kiln::testing
