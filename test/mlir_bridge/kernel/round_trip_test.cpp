// Converting a fusion to bytecode and back preserves every attribute, every type and every bit of the results.
#include <gtest/gtest.h>

#include <set>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "ir/program.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "test/mlir_bridge/kernel/sample_fusions.hpp"

namespace kiln::test {
namespace {

const compiler_context& context() {
  static const compiler_context shared;
  return shared;
}

void expect_round_trip(const module& fusion, bool evaluated) {
  SCOPED_TRACE(fusion.str());
  std::vector<std::byte> bytes = write_kernel(fusion, "sample");
  EXPECT_EQ(bytes, write_kernel(fusion, "sample"));
  portable_kernel kernel = portable_kernel::parse(context(), bytes);
  auto again = to_fusion(kernel);
  again->validate();
  EXPECT_EQ(again->str(), fusion.str());
  EXPECT_EQ(write_kernel(*again, "sample"), bytes);
  EXPECT_EQ(parse_kernel_text(print_kernel(bytes)), bytes);
  if (!evaluated) return;
  auto inputs = sample_inputs(fusion);
  EXPECT_EQ(evaluate(*again, inputs), evaluate(fusion, inputs));
}

TEST(round_trip, every_operator) {
  for (const sample& s : operator_samples()) expect_round_trip(*fusion_of(s), true);
}

TEST(round_trip, every_scalar_function) {
  for (const sample& s : elementwise_samples()) expect_round_trip(*fusion_of(s), true);
}

TEST(round_trip, samples_hold_every_operator_of_the_ir) {
  // These are not allowed in kernels.
  std::set<std::string_view> seen{"parameter", "if", "loop", "choice", "counted", "data_sizes", "code_object"};
  for (const auto& list : {operator_samples(), elementwise_samples()})
    for (const sample& s : list) seen.insert(s.op.name());
  for (std::string_view name : operation_names()) EXPECT_TRUE(seen.contains(name)) << name;
}

TEST(round_trip, symbolic_dims_and_several_outputs) { expect_round_trip(*symbolic_dot_fusion(), false); }

TEST(round_trip, dims_that_are_expressions) {
  dim n = dim::symbol("n"), batch = dim::symbol("batch");
  module m("sample");
  value x = m.add_parameter("input0", {element_type::f32, {batch * n, 2 * n + 1, 3}});
  m.set_outputs({m.add(elementwise{scalar_function::exp}, {x})}, {"output0"});
  expect_round_trip(m, false);
}

class constant_of : public testing::TestWithParam<int> {};

TEST_P(constant_of, every_element_type) {
  auto type = static_cast<element_type>(GetParam());
  for (double v : {0.0, 1.0, 2.0, -3.0}) {
    if (v < 0 && (is_unsigned_integer(type) || type == element_type::boolean)) continue;
    for (std::vector<dim> dims : {std::vector<dim>{}, std::vector<dim>{3, 5}}) {
      module m("sample");
      value c = m.add(constant{literal::filled({type, dims}, v)}, {});
      m.set_outputs({m.add(broadcast{{2, 3, 5}}, {c})}, {"output0"});
      expect_round_trip(m, true);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(types, constant_of, testing::Range(0, static_cast<int>(element_type_count)));

TEST(round_trip, the_bits_of_a_nan_survive) {
  module m("sample");
  literal odd_nan = literal::of<std::uint32_t>({element_type::f32, {}}, {0xffc12345u});
  m.set_outputs({m.add(broadcast{{3}}, {m.add(constant{odd_nan}, {})})}, {"output0"});
  expect_round_trip(m, false);
  auto again = to_fusion(portable_kernel::parse(context(), write_kernel(m, "sample")));
  EXPECT_EQ(again->instructions().front().op().get_if<constant>()->data, odd_nan);
}

TEST(write_kernel, names_and_origins_do_not_reach_the_bytes) {
  auto plain = symbolic_dot_fusion();
  module named("another");
  std::vector<value> arguments;
  for (value p : plain->parameters())
    arguments.push_back(named.add_parameter("weights of layer " + std::to_string(arguments.size()), p.type()));
  auto outputs = named.inline_module(*plain, arguments);
  for (instruction& i : named.instructions()) i.set_origin("somewhere");
  named.set_outputs(outputs, {"left", "right"});
  EXPECT_EQ(write_kernel(named, "k"), write_kernel(*plain, "k"));
  EXPECT_NE(write_kernel(*plain, "k"), write_kernel(*plain, "l"));
}

TEST(write_kernel, is_small_and_says_its_symbol) {
  auto bytes = write_kernel(*symbolic_dot_fusion(), "dot_add_relu");
  EXPECT_LT(bytes.size(), 1200u);
  EXPECT_EQ(portable_kernel::parse(context(), bytes).symbol(), "dot_add_relu");
}

error_kind kind_of(const std::function<void()>& action, std::string& message) {
  try {
    action();
  } catch (const error& e) {
    message = e.what();
    return e.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return error_kind::internal;
}

TEST(write_kernel, refuses_constants_with_different_elements) {
  module m("sample");
  value c = m.add(constant{literal::from_int64({1, 2, 3})}, {});
  m.set_outputs({m.add(convert{element_type::f32}, {c})}, {"output0"});
  std::string message;
  EXPECT_EQ(kind_of([&] { write_kernel(m, "k"); }, message), error_kind::unsupported);
  EXPECT_NE(message.find("i64[3]"), std::string::npos) << message;
}

TEST(write_kernel, refuses_what_the_dialect_does_not_have) {
  module m("sample");
  value x = m.add_parameter("input0", {element_type::f32, {3}});
  m.set_outputs({m.add(code_object::make("inner", code_format::mlir_bytecode, {}, "", {x.type()}), {x})}, {"output0"});
  std::string message;
  EXPECT_EQ(kind_of([&] { write_kernel(m, "k"); }, message), error_kind::unsupported);
  EXPECT_NE(message.find("code_object"), std::string::npos) << message;
}

}  // namespace
}  // namespace kiln::test
