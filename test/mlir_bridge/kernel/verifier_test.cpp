// A malformed kernel is refused, with a message that names what is wrong with it.
#include <gtest/gtest.h>

#include "ir/error.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln::test {
namespace {

struct refusal {
  const char* name;
  // The body of a kernel that takes %x : tensor<3x5xf32> and returns %r.
  const char* body;
  const char* result;
  const char* says;
};

class refused : public testing::TestWithParam<refusal> {};

std::string kernel_text(const char* body, const char* result) {
  return std::string("kiln.kernel @k(%x: tensor<3x5xf32>) -> ") + result + " {\n" + body +
         "\n kiln.return %r : " + result + "\n}\n";
}

TEST_P(refused, with_a_message) {
  try {
    parse_kernel_text(kernel_text(GetParam().body, GetParam().result));
    FAIL() << "accepted";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::corrupted);
    EXPECT_NE(std::string(e.what()).find(GetParam().says), std::string::npos) << e.what();
  }
}

const refusal refusals[] = {
    {"wrong_shape", "%r = kiln.transpose %x {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<3x5xf32>",
     "tensor<3x5xf32>", "gives f32[5, 3], its result type says f32[3, 5]"},
    {"wrong_type", "%r = kiln.softmax %x {axis = 1 : i64, logarithm = false} : (tensor<3x5xf32>) -> tensor<3x5xf16>",
     "tensor<3x5xf16>", "f16[3, 5]"},
    {"axis_outside", "%r = kiln.softmax %x {axis = 2 : i64, logarithm = false} : (tensor<3x5xf32>) -> tensor<3x5xf32>",
     "tensor<3x5xf32>", "axis 2"},
    {"missing_attribute", "%r = kiln.softmax %x {axis = 1 : i64} : (tensor<3x5xf32>) -> tensor<3x5xf32>",
     "tensor<3x5xf32>", "logarithm"},
    {"unknown_attribute",
     "%r = kiln.softmax %x {axis = 1 : i64, logarithm = false, tile = 4 : i64} : (tensor<3x5xf32>) -> tensor<3x5xf32>",
     "tensor<3x5xf32>", "does not know"},
    {"kind_of_attribute",
     "%r = kiln.softmax %x {axis = 1.0 : f64, logarithm = false} : (tensor<3x5xf32>) -> tensor<3x5xf32>",
     "tensor<3x5xf32>", "axis"},
    {"unknown_enumerator",
     "%r = kiln.reduce %x {axes = array<i64: 1>, keep_dims = true, kind = \"median\"} : (tensor<3x5xf32>) -> "
     "tensor<3x1xf32>",
     "tensor<3x1xf32>", "median"},
    {"unknown_function", "%r = kiln.elementwise %x {function = \"frobnicate\"} : (tensor<3x5xf32>) -> tensor<3x5xf32>",
     "tensor<3x5xf32>", "frobnicate"},
    {"operator_as_function", "%r = kiln.elementwise %x {function = \"softmax\"} : (tensor<3x5xf32>) -> tensor<3x5xf32>",
     "tensor<3x5xf32>", "softmax"},
    {"arity",
     "%r = kiln.elementwise %x, %x {function = \"exp\"} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>",
     "tensor<3x5xf32>", "elementwise"},
    {"unnamed_dims", "%r = kiln.reshape %x : (tensor<3x5xf32>) -> tensor<?xf32>", "tensor<?xf32>", "#kiln.dims"},
    {"dims_rank", "%r = kiln.reshape %x : (tensor<3x5xf32>) -> tensor<?xf32, #kiln.dims<[\"a\", \"b\"]>>",
     "tensor<?xf32, #kiln.dims<[\"a\", \"b\"]>>", "rank 1"},
    {"dims_disagree", "%r = kiln.reshape %x : (tensor<3x5xf32>) -> tensor<15x?xf32, #kiln.dims<[\"7\", \"b\"]>>",
     "tensor<15x?xf32, #kiln.dims<[\"7\", \"b\"]>>", "does not agree"},
    {"dims_not_canonical", "%r = kiln.reshape %x : (tensor<3x5xf32>) -> tensor<?xf32, #kiln.dims<[\"b + 1 + 1\"]>>",
     "tensor<?xf32, #kiln.dims<[\"b + 1 + 1\"]>>", "#kiln.dims"},
    {"foreign_element_type", "%r = kiln.convert %x : (tensor<3x5xf32>) -> tensor<3x5xi3>", "tensor<3x5xi3>", "i3"},
    {"several_values", "%r = kiln.constant dense<[1.0, 2.0]> : tensor<2xf32>", "tensor<2xf32>", "one value"},
    {"returned_type",
     "%r = kiln.convert %x : (tensor<3x5xf32>) -> tensor<3x5xf16>\n kiln.return %r : tensor<3x5xf16>\n}\nkiln.kernel "
     "@l(%x: tensor<3x5xf32>) "
     "-> tensor<3xf32> {\n%r = kiln.convert %x : (tensor<3x5xf32>) -> tensor<3x5xf16>",
     "tensor<3x5xf16>", "returns other types"},
};
INSTANTIATE_TEST_SUITE_P(kernels, refused, testing::ValuesIn(refusals), [](const auto& row) { return row.param.name; });

TEST(verifier, accepts_the_same_kernel_when_it_is_right) {
  EXPECT_FALSE(
      parse_kernel_text(
          kernel_text("%r = kiln.transpose %x {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>",
                      "tensor<5x3xf32>"))
          .empty());
}

TEST(verifier, refuses_operations_of_other_dialects_and_more_than_one_kernel) {
  std::string one = kernel_text("%r = kiln.convert %x : (tensor<3x5xf32>) -> tensor<3x5xf16>", "tensor<3x5xf16>");
  std::string other = one;
  other.replace(other.find("@k"), 2, "@l");
  EXPECT_THROW(parse_kernel_text(one + other), error);
  EXPECT_THROW(parse_kernel_text(""), error);
  EXPECT_THROW(parse_kernel_text("module { module { } }"), error);
}

}  // namespace
}  // namespace kiln::test
