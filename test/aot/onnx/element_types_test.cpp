// Element types that the standard allows for an operator and that models rarely use.
#include <gtest/gtest.h>

#include "spirv/library/reference.hpp"
#include "test/aot/onnx/open_models.hpp"

namespace {

using namespace kiln;
using namespace kiln::test;
using onnx_type = ::onnx::TensorProto;
constexpr int int4_type = 22;  // newer than the installed header
using node_attributes = std::function<void(::onnx::NodeProto&)>;

struct operand {
  int type;
  literal data;
};

operand typed(int type, element_type as, std::vector<dim> dims, const std::vector<double>& values) {
  return {type, literal::from_doubles({as, std::move(dims)}, values)};
}

// The results of a model of one node. An empty operand is left out.
std::vector<literal> results_of(const std::string& op, int opset, const std::vector<operand>& operands,
                                std::size_t outputs = 1, const node_attributes& attributes = {}) {
  model_builder m(opset);
  std::vector<std::string> names, results;
  std::vector<literal> inputs;
  for (const operand& o : operands) {
    names.push_back("x" + std::to_string(names.size()));
    std::vector<std::string> dims;
    for (const dim& d : o.data.type().dims) dims.push_back(d.str());
    m.input(names.back(), o.type, dims);
    inputs.push_back(o.data);
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    results.push_back("y" + std::to_string(i));
    m.output(results.back(), onnx_type::UNDEFINED);
  }
  auto& node = m.node(op, names, results);
  if (attributes) attributes(node);
  const program p = m.import();
  return evaluate(p.main(), inputs, spirv::library_runner(p));
}

void real(::onnx::NodeProto& node, const std::string& name, float x) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::FLOAT);
  a.set_f(x);
}
void text(::onnx::NodeProto& node, const std::string& name, const std::string& x) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::STRING);
  a.set_s(x);
}

TEST(element_types, shrink_of_integers_truncates) {
  auto y = results_of("Shrink", 9, {typed(onnx_type::INT32, element_type::i32, {3}, {-6, 1, 4})}, 1,
                      [](auto& n) { real(n, "lambd", 1.5F), real(n, "bias", 1.5F); });
  EXPECT_EQ(y[0].to_doubles(), (std::vector<double>{-4, 0, 2}));
  EXPECT_EQ(y[0].type().type, element_type::i32);
}

TEST(element_types, gemm_of_integers_is_scaled_by_real_numbers) {
  const auto matrix = [](std::vector<double> v) { return typed(onnx_type::INT64, element_type::i64, {2, 2}, v); };
  auto y = results_of("Gemm", 13, {matrix({1, 2, 3, 4}), matrix({1, 0, 0, 1}), matrix({1, 1, 1, 1})}, 1,
                      [](auto& n) { real(n, "alpha", 0.5F), real(n, "beta", 0.5F); });
  EXPECT_EQ(y[0].to_doubles(), (std::vector<double>{1, 1, 2, 2}));
}

TEST(element_types, einsum_of_bytes) {
  const auto bytes = [](std::vector<double> v) { return typed(onnx_type::UINT8, element_type::u8, {3}, v); };
  auto y = results_of("Einsum", 12, {bytes({1, 2, 3}), bytes({10, 20, 30})}, 1,
                      [](auto& n) { text(n, "equation", "i,i->"); });
  EXPECT_EQ(y[0].to_doubles(), (std::vector<double>{140}));
  EXPECT_EQ(y[0].type().type, element_type::u8);
}

TEST(element_types, deviations_of_a_layer_normalization_have_the_stash_type) {
  const auto row = typed(onnx_type::DOUBLE, element_type::f64, {1, 2}, {1, 3});
  const auto scale = typed(onnx_type::DOUBLE, element_type::f64, {2}, {1, 1});
  auto y = results_of("LayerNormalization", 17, {row, scale}, 3);
  EXPECT_EQ(y[0].type().type, element_type::f64);
  EXPECT_EQ(y[1].type().type, element_type::f32);
  EXPECT_EQ(y[2].type().type, element_type::f32);
}

TEST(element_types, blocks_of_integers_are_added_by_col2im) {
  model_builder m(18);
  m.input("x", onnx_type::INT32, {"1", "4", "2"}).output("y", onnx_type::INT32);
  m.integers("image", {2}, {2, 3});
  m.integers("block", {2}, {2, 2});
  m.node("Col2Im", {"x", "image", "block"}, {"y"});
  const auto x = typed(onnx_type::INT32, element_type::i32, {1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(evaluate(m.import().main(), std::vector<literal>{x.data})[0].to_doubles(),
            (std::vector<double>{1, 5, 4, 5, 13, 8}));
}

TEST(element_types, booleans_are_scattered_with_a_reduction) {
  const auto bits = [](std::vector<double> v) {
    const dim size = static_cast<std::int64_t>(v.size());
    return typed(onnx_type::BOOL, element_type::boolean, {size}, v);
  };
  const auto rows = typed(onnx_type::INT64, element_type::i64, {2, 1}, {0, 2});
  const auto places = typed(onnx_type::INT64, element_type::i64, {2}, {0, 2});
  const auto reduce = [](const char* how) { return [how](auto& n) { text(n, "reduction", how); }; };
  EXPECT_EQ(results_of("ScatterND", 18, {bits({0, 0, 1}), rows, bits({1, 0})}, 1, reduce("max"))[0].to_doubles(),
            (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(
      results_of("ScatterElements", 18, {bits({1, 0, 1}), places, bits({1, 0})}, 1, reduce("min"))[0].to_doubles(),
      (std::vector<double>{1, 0, 0}));
}

TEST(element_types, a_cache_of_four_bits_is_written) {
  const auto cache = typed(int4_type, element_type::i4, {1, 3, 2}, {1, 2, 3, 4, 5, 6});
  const auto row = typed(int4_type, element_type::i4, {1, 1, 2}, {-7, -8});
  const auto at = typed(onnx_type::INT64, element_type::i64, {1}, {1});
  auto y = results_of("TensorScatter", 24, {cache, row, at});
  EXPECT_EQ(y[0].to_doubles(), (std::vector<double>{1, 2, -7, -8, 5, 6}));
  EXPECT_EQ(y[0].type().type, element_type::i4);
}

TEST(element_types, booleans_are_resized) {
  model_builder m(13);
  m.input("x", onnx_type::BOOL, {"1", "1", "1", "2"}).output("y", onnx_type::BOOL);
  m.floats("scales", {4}, {1, 1, 1, 2});
  m.node("Resize", {"x", "", "scales"}, {"y"});
  const auto x = typed(onnx_type::BOOL, element_type::boolean, {1, 1, 1, 2}, {1, 0});
  EXPECT_EQ(evaluate(m.import().main(), std::vector<literal>{x.data})[0].to_doubles(),
            (std::vector<double>{1, 1, 0, 0}));
}

TEST(element_types, unique_of_types_of_64_bits) {
  const auto reals = typed(onnx_type::DOUBLE, element_type::f64, {6}, {2.5, -1, 0.0, -0.0, -3, 2.5});
  auto y = results_of("Unique", 11, {reals}, 4);
  EXPECT_EQ(y[0].to_doubles(), (std::vector<double>{-3, -1, 0, 2.5}));
  EXPECT_EQ(y[1].to_doubles(), (std::vector<double>{4, 1, 2, 0}));
  EXPECT_EQ(y[3].to_doubles(), (std::vector<double>{1, 1, 2, 2}));
  const auto whole = typed(onnx_type::UINT64, element_type::u64, {3}, {0x1p63, 7, 0x1p63});
  EXPECT_EQ(results_of("Unique", 11, {whole})[0].to_doubles(), (std::vector<double>{7, 0x1p63}));
  const auto none = typed(onnx_type::DOUBLE, element_type::f64, {0}, {});
  EXPECT_EQ(results_of("Unique", 11, {none}, 4)[3].type().dims, (std::vector<dim>{0}));
}

TEST(element_types, kernels_of_the_library_serve_other_floats) {
  const auto image = typed(onnx_type::DOUBLE, element_type::f64, {1, 1, 2, 2}, {1, 1, 1, 1});
  const auto box = typed(onnx_type::DOUBLE, element_type::f64, {1, 4}, {0, 0, 1, 1});
  const auto number = typed(onnx_type::INT64, element_type::i64, {1}, {0});
  auto y = results_of("RoiAlign", 16, {image, box, number});
  EXPECT_EQ(y[0].to_doubles(), (std::vector<double>{1}));
  EXPECT_EQ(y[0].type().type, element_type::f64);
  const auto half = typed(onnx_type::FLOAT16, element_type::f16, {3}, {0, 0, 0});
  EXPECT_EQ(results_of("RandomNormalLike", 9, {half})[0].type().type, element_type::f16);
}

TEST(element_types, attention_with_values_of_another_type_and_a_mask_of_integers) {
  const auto row = [](int type, element_type as, std::vector<double> v) { return typed(type, as, {1, 1, 2, 1}, v); };
  const auto ones = row(onnx_type::FLOAT, element_type::f32, {0, 0});
  const auto values = row(onnx_type::DOUBLE, element_type::f64, {1, 3});
  auto y = results_of("Attention", 23, {ones, ones, values});
  EXPECT_EQ(y[0].to_doubles(), (std::vector<double>{2, 2}));
  EXPECT_EQ(y[0].type().type, element_type::f32);
  const auto mask = typed(onnx_type::INT32, element_type::i32, {1, 2}, {0, 40});
  EXPECT_NEAR(results_of("Attention", 23, {ones, ones, values, mask})[0].to_doubles()[0], 3, 1e-5);
}

}  // namespace
