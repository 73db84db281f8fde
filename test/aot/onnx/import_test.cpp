// Dimensions, opsets and shape arithmetic of the importer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "aot/onnx/operator_versions.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "test/aot/onnx/model_builder.hpp"

namespace kiln {
namespace {

using test::bool_type;
using test::float_type;
using test::graph_builder;
using test::int64_type;
using test::model_builder;
using testing::HasSubstr;

template <class F>
void expect_error(error_kind kind, const std::string& part, F f) {
  try {
    f();
    ADD_FAILURE() << "nothing was thrown, expected " << name(kind) << " with '" << part << "'";
  } catch (const error& e) {
    EXPECT_EQ(name(e.kind()), name(kind)) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(part));
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
  }
}

literal floats(std::vector<dim> dims, const std::vector<float>& values) {
  return literal::of<float>({element_type::f32, std::move(dims)}, values);
}

TEST(dim_spec, reads_values_and_ranges) {
  auto [fixed_name, fixed] = parse_dim_spec("batch=4");
  EXPECT_EQ(fixed_name, "batch");
  EXPECT_EQ(std::get<std::int64_t>(fixed), 4);
  auto [open_name, open] = parse_dim_spec("seq=1:512:64,128");
  EXPECT_EQ(open_name, "seq");
  EXPECT_EQ(std::get<dim_range>(open), (dim_range{1, 512, {64, 128}}));
  EXPECT_EQ(std::get<dim_range>(parse_dim_spec("seq=2:9").second), (dim_range{2, 9, {}}));
  EXPECT_EQ(std::get<dim_range>(parse_dim_spec("past=0:20").second), (dim_range{0, 20, {}}));
  EXPECT_EQ(std::get<std::int64_t>(parse_dim_spec("past=0").second), 0);
}

TEST(dim_spec, refuses_what_is_malformed) {
  for (const char* text :
       {"batch", "=4", "batch=", "batch=x", "batch=-1", "b=9:2", "b=1:4:5", "b=1:4:", "b=1:4:2,", "b=1:", "b=4x"})
    expect_error(error_kind::usage, text, [&] { parse_dim_spec(text); });
}

// y = Reshape(x, Concat(Shape(x)[0], [-1])), the form in which PyTorch exports x.view(x.shape[0], -1).
model_builder flattening() {
  model_builder m;
  m.input("x", float_type, {"batch", "3", "5"}).output("y");
  m.integers("zero", {}, {0});
  m.integers("axes", {1}, {0});
  m.integers("rest", {1}, {-1});
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"b"});
  m.node("Unsqueeze", {"b", "axes"}, {"b1"});
  m.node("Concat", {"b1", "rest"}, {"t"}).mutable_attribute()->Add()->CopyFrom([] {
    ::onnx::AttributeProto a;
    a.set_name("axis");
    a.set_type(::onnx::AttributeProto::INT);
    a.set_i(0);
    return a;
  }());
  m.node("Reshape", {"x", "t"}, {"y"});
  return m;
}

TEST(dims, symbolic_shape_arithmetic_resolves_at_import) {
  program p = flattening().import();
  EXPECT_EQ(p.main().outputs()[0].type(), (shape{element_type::f32, {dim::symbol("batch"), 15}}));
  EXPECT_EQ(p.main().instructions().size(), 2u);  // the parameter and the reshape: nothing of the arithmetic is left
  EXPECT_EQ(p.symbols.at("batch"), dim_range{});
  program bound = p.bind({{"batch", 7}});
  EXPECT_EQ(bound.main().outputs()[0].type(), (shape{element_type::f32, {7, 15}}));
}

TEST(dims, options_fix_or_bound_a_dimension) {
  import_options options;
  options.dims = {parse_dim_spec("batch=2")};
  program fixed = flattening().import(options);
  EXPECT_EQ(fixed.main().outputs()[0].type(), (shape{element_type::f32, {2, 15}}));
  EXPECT_TRUE(fixed.symbols.empty());
  options.dims = {parse_dim_spec("batch=1:8:4")};
  EXPECT_EQ(flattening().import(options).symbols.at("batch"), (dim_range{1, 8, {4}}));
  options.dims = {parse_dim_spec("seq=2")};
  expect_error(error_kind::usage, "only 'batch'", [&] { flattening().import(options); });
}

TEST(dims, unnamed_dimensions_get_a_name_of_their_input) {
  model_builder m;
  m.input("x", float_type, {"", "3"}).output("y");
  m.node("Relu", {"x"}, {"y"});
  program p = m.import();
  EXPECT_EQ(p.main().outputs()[0].type().dims[0].str(), "x_dim0");
  EXPECT_TRUE(p.symbols.contains("x_dim0"));
}

TEST(dims, minus_one_and_names_that_say_nothing_are_dimensions_of_their_own) {
  model_builder m;
  m.input("x", float_type, {"-1", "?", "?", "None"}).output("y");
  m.node("Relu", {"x"}, {"y"});
  program p = m.import();
  EXPECT_EQ(p.symbols.size(), 4u);
  EXPECT_EQ(p.main().outputs()[0].type().str(), "f32[x_dim0, x_dim1, x_dim2, x_dim3]");
}

TEST(dims, a_symbolic_dimension_can_become_data) {
  model_builder m;
  m.input("x", float_type, {"batch", "3"}).output("y", int64_type);
  m.node("Shape", {"x"}, {"y"});
  program p = m.import();
  EXPECT_EQ(p.main().outputs()[0].type(), (shape{element_type::i64, {2}}));
  program bound = p.bind({{"batch", 5}});
  std::vector<literal> inputs{literal::filled({element_type::f32, {5, 3}}, 1)};
  EXPECT_EQ(evaluate(bound.main(), inputs)[0].to_int64(), (std::vector<std::int64_t>{5, 3}));
}

TEST(dims, a_rank_that_depends_on_data_is_refused) {
  model_builder m;
  m.input("x", float_type, {"6"}).input("s", float_type, {"n"}).output("y");
  model_builder::attribute(m.node("Cast", {"s"}, {"sizes"}), "to", int64_type);
  m.node("Reshape", {"x", "sizes"}, {"y"});
  expect_error(
      error_kind::unsupported,
      "node 'Reshape_node' (Reshape): input 1 (shape) must be known at import, but depends on input 's'; give it at "
      "compile time with --value s=...",
      [&] { m.import(); });
}

TEST(opsets, versions_out_of_range_are_refused) {
  for (int opset : {0, 5}) {
    model_builder m(opset);
    m.input("x", float_type, {"2"}).output("y");
    m.node("Relu", {"x"}, {"y"});
    expect_error(error_kind::unsupported, "opset " + std::to_string(opset), [&] { m.import(); });
  }
}

// Relu has not changed since opset 14.
TEST(opsets, later_ones_are_accepted) {
  for (int opset : {21, 22, 23, newest_onnx_opset(), newest_onnx_opset() + 1, 99}) {
    model_builder m(opset);
    m.input("x", float_type, {"2"}).output("y");
    m.node("Relu", {"x"}, {"y"});
    std::vector<literal> inputs{floats({2}, {-1, 3})};
    EXPECT_EQ(evaluate(m.import().main(), inputs)[0].to_doubles(), (std::vector<double>{0, 3})) << opset;
  }
}

// Scatter was removed after opset 10, so models of any later opset must not contain it.
TEST(opsets, an_operator_whose_later_version_is_unknown_is_refused_by_name) {
  for (int opset : {11, 22, 99}) {
    model_builder m(opset);
    m.input("x", float_type, {"2"}).input("i", int64_type, {"1"}).input("u", float_type, {"1"}).output("y");
    m.node("Scatter", {"x", "i", "u"}, {"y"});
    expect_error(error_kind::unsupported,
                 "operator Scatter of opset " + std::to_string(opset) + " is not supported, only 9 to 10",
                 [&] { m.import(); });
  }
}

TEST(opsets, the_versions_are_those_of_operators) {
  std::set<std::string_view> operators, versions;
  for (const onnx_operator& o : supported_onnx_operators())
    if (o.domain.empty()) operators.insert(o.name);
  for (const auto& v : onnx_import::operator_versions()) EXPECT_TRUE(versions.insert(v.name).second) << v.name;
  EXPECT_EQ(operators, versions);
  EXPECT_TRUE(std::ranges::is_sorted(onnx_import::operator_versions(), {}, &onnx_import::operator_version::name));
}

TEST(opsets, space_to_depth_in_both_orders) {
  for (std::string mode : {"DCR", "CRD"}) {
    model_builder m(28);
    m.input("x", float_type, {"1", "2", "2", "2"}).output("y");
    auto& node = m.node("SpaceToDepth", {"x"}, {"y"});
    m.attribute(node, "blocksize", 2);
    auto& a = *node.add_attribute();
    a.set_name("mode"), a.set_type(::onnx::AttributeProto::STRING), a.set_s(mode);
    std::vector<literal> inputs{floats({1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})};
    EXPECT_EQ(evaluate(m.import().main(), inputs)[0].to_doubles(), mode == "DCR"
                                                                       ? (std::vector<double>{0, 4, 1, 5, 2, 6, 3, 7})
                                                                       : (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST(opsets, an_operator_newer_than_the_model_is_refused) {
  model_builder m(13);
  m.input("x", float_type, {"2"}).output("y");
  m.node("Gelu", {"x"}, {"y"});
  expect_error(error_kind::unsupported, "Gelu of opset 13", [&] { m.import(); });
}

TEST(opsets, unknown_operators_are_refused_by_name) {
  model_builder m;
  m.input("x", float_type, {"2"}).output("y");
  m.node("Foo", {"x"}, {"y"}).set_name("Conv_3");
  expect_error(error_kind::unsupported, "node 'Conv_3' (Foo): operator Foo of domain '' is not supported; see kiln ops",
               [&] { m.import(); });
}

TEST(opsets, softmax_before_13_is_over_a_matrix) {
  std::vector<float> x(12);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.25f * static_cast<float>(i % 5);
  for (int opset : {11, 13}) {
    model_builder m(opset);
    m.input("x", float_type, {"2", "2", "3"}).output("y");
    m.attribute(m.node("Softmax", {"x"}, {"y"}), "axis", 1);
    program p = m.import();
    std::vector<literal> inputs{floats({2, 2, 3}, x)};
    auto y = evaluate(p.main(), inputs)[0];
    double over_matrix = 0, over_axis = y.at(0) + y.at(3);
    for (int i = 0; i < 6; ++i) over_matrix += y.at(i);
    EXPECT_NEAR(opset < 13 ? over_matrix : over_axis, 1, 1e-6);
    EXPECT_EQ(y.type(), inputs[0].type());
  }
}

TEST(folding, batch_normalization_is_a_multiplication_and_an_addition) {
  model_builder m;
  m.input("x", float_type, {"1", "2", "3"}).output("y");
  m.floats("scale", {2}, {2, 3});
  m.floats("bias", {2}, {1, -1});
  m.floats("mean", {2}, {0.5f, 4});
  m.floats("variance", {2}, {4, 9});
  m.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"y"});
  program p = m.import();
  int arithmetic = 0;
  for (const auto& i : p.main().instructions()) arithmetic += i.op().is<elementwise>();
  EXPECT_EQ(arithmetic, 2);
  std::vector<literal> inputs{floats({1, 2, 3}, {0.5f, 1.5f, 2.5f, 4, 7, 1})};
  auto y = evaluate(p.main(), inputs)[0].to_doubles();
  std::vector<double> wanted{1, 2, 3, -1, 2, -4};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(y[i], wanted[i], 1e-4) << i;
}

// A start before the axis means its first element, for both directions of the slice.
TEST(slices, bounds_beyond_the_axis) {
  for (std::int64_t step : {1, -1}) {
    model_builder m;
    m.input("x", float_type, {"3"}).output("y");
    m.integers("starts", {1}, {-9}), m.integers("ends", {1}, {step > 0 ? INT64_MAX : INT64_MIN}),
        m.integers("axes", {1}, {0}), m.integers("steps", {1}, {step});
    m.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
    std::vector<literal> inputs{literal::of<float>({element_type::f32, {3}}, {1, 2, 3})};
    EXPECT_EQ(evaluate(m.import().main(), inputs)[0].to_doubles(),
              step > 0 ? (std::vector<double>{1, 2, 3}) : (std::vector<double>{1}))
        << step;
  }
}

TEST(origins, name_the_node) {
  model_builder m;
  m.input("x", float_type, {"2"}).output("y");
  m.node("Relu", {"x"}, {"y"}).set_name("/layer1/relu");
  EXPECT_EQ(m.import().main().outputs()[0].producer->origin(), "/layer1/relu (Relu)");
}

// Levels 1 to 3 name floating types, and the rows keep theirs.
TEST(operators, packed_products_may_round_their_rows_where_the_model_allows_bytes) {
  for (std::int64_t level : {0, 1, 2, 3, 4}) {
    model_builder m(18);
    m.input("x", float_type, {"n", "32"}).output("y").floats("scales", {2, 1}, {1, 2});
    m.tensor("codes", ::onnx::TensorProto::UINT8, {2, 1, 16}).set_raw_data(std::string(32, '\x19'));
    auto& node = m.node("MatMulNBits", {"x", "codes", "scales"}, {"y"});
    node.set_domain("com.microsoft");
    for (auto [name, number] : {std::pair("N", 2), {"K", 32}, {"bits", 4}, {"block_size", 32}})
      graph_builder::attribute(node, name, std::int64_t{number});
    graph_builder::attribute(node, "accuracy_level", level);
    const program made = m.import();
    std::vector<std::int64_t> bits;
    for (const instruction& i : made.main().instructions())
      if (const auto* product = i.op().get_if<dot>()) bits.push_back(product->left_bits);
    EXPECT_EQ(bits, std::vector<std::int64_t>{level == 4 ? 8 : 0}) << level;
  }
}

// Kernels compute vectors of the last axis, which is long here: the pixels.
TEST(operators, lrn_pools_channels_of_which_the_pixels_are_the_last_axis) {
  model_builder m;
  m.input("x", float_type, {"1", "5", "2", "2"}).output("y");
  auto& node = m.node("LRN", {"x"}, {"y"});
  graph_builder::attribute(node, "size", std::int64_t{3});
  const program made = m.import();
  int poolings = 0;
  for (const instruction& i : made.main().instructions())
    if (const auto* op = i.op().get_if<pooling>()) {
      ++poolings;
      EXPECT_EQ(op->layout, tensor_layout::channels_last);
      EXPECT_EQ(i.outputs()[0].str(), "f32[1, 5, 4]");
    }
  EXPECT_EQ(poolings, 1);
}

TEST(operators, the_table_is_sorted_and_sensible) {
  auto rows = supported_onnx_operators();
  EXPECT_GE(rows.size(), 140u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_LE(rows[i].min_opset, rows[i].max_opset) << rows[i].name;
    if (i) {
      EXPECT_LT(std::pair(rows[i - 1].domain, rows[i - 1].name), std::pair(rows[i].domain, rows[i].name));
    }
  }
}

}  // namespace
}  // namespace kiln
