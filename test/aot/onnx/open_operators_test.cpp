// Operators on open dimensions give what the same operators give on known ones.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ir/bind_shapes.hpp"
#include "ir/error.hpp"
#include "test/aot/onnx/model_builder.hpp"

namespace {

using namespace kiln;
using namespace kiln::test;

using sizes = std::vector<std::int64_t>;

literal wave(const sizes& dims, double step) {
  shape type{element_type::f32, {dims.begin(), dims.end()}};
  std::vector<float> values(static_cast<std::size_t>(type.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(step * static_cast<double>(i + 1)));
  return literal::of<float>(type, values);
}

std::vector<literal> run(const program& p, const std::vector<literal>& inputs) {
  std::vector<given_shape> shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    value parameter = p.main().parameters()[i];
    shapes.push_back({module::parameter_name(parameter), parameter.type(), inputs[i].type()});
  }
  return evaluate(p.bind(bind_shapes(shapes)).main(), inputs);
}

// `build` makes a model with an input of the given dims. The model is imported with names for the dims of `open` and
// again for each of `cases`.
void expect_same(const std::function<model_builder(const std::vector<std::string>&)>& build,
                 const std::vector<std::string>& open, const std::vector<sizes>& cases) {
  program general = build(open).import();
  for (const sizes& dims : cases) {
    std::vector<std::string> texts;
    for (std::int64_t d : dims) texts.push_back(std::to_string(d));
    const std::vector<literal> inputs{wave(dims, 0.7)};
    const auto want = run(build(texts).import(), inputs), got = run(general, inputs);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].type(), want[i].type());
      const auto x = got[i].to_doubles(), y = want[i].to_doubles();
      for (std::size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 2e-5) << "output " << i << ", element " << k;
    }
  }
}

TEST(open_operators, a_signal_of_open_length_is_transformed) {
  for (std::int64_t inverse : {0, 1})
    for (std::int64_t onesided : {0, 1})
      for (const char* parts : {"1", "2"})
        expect_same(
            [&](const std::vector<std::string>& dims) {
              model_builder m(20);
              m.input("x", float_type, dims).output("y");
              m.integers("axis", {}, {1});
              auto& node = m.node("DFT", {"x", "", "axis"}, {"y"});
              graph_builder::attribute(node, "inverse", inverse), graph_builder::attribute(node, "onesided", onesided);
              return m;
            },
            {"b", "t", parts}, {{1, 8, std::stoll(parts)}, {2, 5, std::stoll(parts)}, {1, 2, std::stoll(parts)}});
}

TEST(open_operators, columns_of_an_open_image_are_summed) {
  // 4 + 3 * (t - 1) elements from t blocks of 4, and one more that no block covers.
  expect_same(
      [](const std::vector<std::string>& dims) {
        model_builder m(18);
        m.input("x", float_type, dims).output("y");
        m.integers("last", {1}, {2}), m.integers("three", {1}, {3}), m.integers("two", {1}, {2});
        m.integers("block", {1}, {4});
        m.node("Shape", {"x"}, {"shape"});
        m.node("Gather", {"shape", "last"}, {"t"});
        m.node("Mul", {"t", "three"}, {"covered"});
        m.node("Add", {"covered", "two"}, {"image"});
        auto& node = m.node("Col2Im", {"x", "image", "block"}, {"y"});
        graph_builder::attribute(node, "strides", std::vector<std::int64_t>{3});
        return m;
      },
      {"b", "8", "t"}, {{1, 8, 3}, {2, 8, 1}, {1, 8, 6}});
}

TEST(open_operators, images_are_cropped_and_padded_around_the_centre) {
  expect_same(
      [](const std::vector<std::string>& dims) {
        model_builder m(18);
        m.input("x", float_type, dims).output("y");
        m.integers("size", {2}, {6, 7});
        m.node("CenterCropPad", {"x", "size"}, {"y"}).set_name("crop");
        return m;
      },
      {"h", "w"}, {{6, 7}, {9, 4}, {3, 12}, {8, 8}});
}

TEST(open_operators, the_last_windows_of_a_p_norm_may_be_incomplete) {
  expect_same(
      [](const std::vector<std::string>& dims) {
        model_builder m(18);
        m.input("x", float_type, dims).output("y");
        auto& node = m.node("LpPool", {"x"}, {"y"});
        for (auto [name, x] : {std::pair("kernel_shape", 3), std::pair("strides", 2)})
          graph_builder::attribute(node, name, std::vector<std::int64_t>{x, x});
        graph_builder::attribute(node, "ceil_mode", 1);
        return m;
      },
      {"1", "2", "h", "w"}, {{1, 2, 5, 6}, {1, 2, 8, 4}});
  // Rows of 4 in windows of 3 with a stride of 2: the second window has two elements.
  model_builder m(18);
  m.input("x", float_type, {"1", "1", "4"}).output("y");
  auto& node = m.node("LpPool", {"x"}, {"y"});
  graph_builder::attribute(node, "kernel_shape", std::vector<std::int64_t>{3});
  graph_builder::attribute(node, "strides", std::vector<std::int64_t>{2});
  graph_builder::attribute(node, "ceil_mode", 1);
  const auto y = run(m.import(), {literal::of<float>({element_type::f32, {1, 1, 4}}, {1, 2, 2, 4})})[0].to_doubles();
  ASSERT_EQ(y.size(), 2u);
  EXPECT_NEAR(y[0], 3, 1e-6);
  EXPECT_NEAR(y[1], std::sqrt(20.0), 1e-6);
}

TEST(open_operators, the_grid_of_an_open_image) {
  for (std::int64_t corners : {0, 1})
    expect_same(
        [&](const std::vector<std::string>& dims) {
          model_builder m(20);
          m.input("x", float_type, dims).output("y");
          m.integers("two", {1}, {2}), m.integers("three", {1}, {3}), m.integers("from", {1}, {0});
          m.floats("theta", {1, 2, 3}, {0.5f, 0.1f, 0.2f, -0.3f, 0.9f, -0.1f});
          m.node("Shape", {"x"}, {"size"});
          m.node("Slice", {"size", "from", "two"}, {"images"});  // [b, c]
          m.node("Slice", {"images", "from", "one"}, {"b"}), m.integers("one", {1}, {1});
          m.node("Concat", {"b", "two", "three"}, {"wanted"});
          graph_builder::attribute(m.graph.mutable_node()->at(m.graph.node_size() - 1), "axis", std::int64_t{0});
          m.node("Expand", {"theta", "wanted"}, {"thetas"});
          graph_builder::attribute(m.node("AffineGrid", {"thetas", "size"}, {"y"}), "align_corners", corners);
          return m;
        },
        {"b", "c", "h", "w"}, {{1, 3, 4, 5}, {2, 1, 1, 3}});
}

// s += x, y = s * x, backwards and collected along axis 1.
TEST(open_operators, a_scan_over_an_open_length) {
  expect_same(
      [](const std::vector<std::string>& dims) {
        model_builder m;
        m.input("xs", float_type, dims).output("s").output("ys");
        m.floats("s0", {2}, {1, 2});
        auto& scan = m.node("Scan", {"s0", "xs"}, {"s", "ys"});
        graph_builder::attribute(scan, "num_scan_inputs", 1);
        for (const char* name : {"scan_input_directions", "scan_output_directions", "scan_output_axes"})
          graph_builder::attribute(scan, name, std::vector<std::int64_t>{1});
        graph_builder body(graph_builder::body(scan, "body"));
        body.input("s_in", float_type, {"2"}).input("x", float_type, {"2"}).output("s_out").output("y");
        body.node("Add", {"s_in", "x"}, {"s_out"});
        body.node("Mul", {"s_out", "x"}, {"y"});
        return m;
      },
      {"t", "2"}, {{3, 2}, {1, 2}, {7, 2}});
}

// A mask [t, total] over the past and new keys: total is their number.
TEST(open_operators, a_mask_has_the_length_of_all_keys_and_a_past_may_be_empty) {
  model_builder m(23);
  m.input("q", float_type, {"1", "2", "t", "4"}).input("mask", float_type, {"t", "total"});
  m.input("past_k", float_type, {"1", "2", "p", "4"}).input("past_v", float_type, {"1", "2", "p", "4"});
  m.output("y").output("k").output("v");
  m.node("Attention", {"q", "q", "q", "mask", "past_k", "past_v"}, {"y", "k", "v"});
  program p = m.import();
  for (std::int64_t past : {0, 3}) {
    const sizes kept{1, 2, past, 4};
    auto results = run(p, {wave({1, 2, 2, 4}, 0.3), wave({2, past + 2}, 0.9), wave(kept, 0.5), wave(kept, 0.2)});
    EXPECT_EQ(results[1].type(), (shape{element_type::f32, {1, 2, past + 2, 4}}));
  }
  EXPECT_THROW(run(p, {wave({1, 2, 2, 4}, 0.3), wave({2, 4}, 0.9), wave({1, 2, 3, 4}, 0.5), wave({1, 2, 3, 4}, 0.2)}),
               error);
}

TEST(open_operators, a_past_that_is_joined_may_be_empty_but_other_dimensions_are_not) {
  model_builder m;
  m.input("past", float_type, {"b", "p", "2"}).input("x", float_type, {"b", "t", "2"}).output("y");
  m.node("Relu", {"x"}, {"r"});
  graph_builder::attribute(m.node("Concat", {"past", "r"}, {"y"}), "axis", std::int64_t{1});
  program p = m.import();
  EXPECT_EQ(p.symbols.at("p").min, 0);
  EXPECT_EQ(p.symbols.at("t").min, 1);
  EXPECT_EQ(run(p, {wave({1, 0, 2}, 1), wave({1, 3, 2}, 1)})[0].type(), (shape{element_type::f32, {1, 3, 2}}));
}

// Every fourth frame of a mask: one for short lengths, which broadcasts over all of them.
TEST(open_operators, a_size_that_is_usually_one_broadcasts) {
  model_builder m;
  m.input("x", float_type, {"2", "n"}).output("y");
  m.integers("zero", {1}, {0}), m.integers("far", {1}, {INT64_MAX}), m.integers("axis", {1}, {1});
  m.integers("step", {1}, {4});
  m.node("Slice", {"x", "zero", "far", "axis", "step"}, {"mask"});
  m.node("Add", {"x", "mask"}, {"y"});
  program p = m.import();
  for (std::int64_t n : {1, 2, 4}) {
    const literal x = wave({2, n}, 0.4);
    const auto y = run(p, {x})[0].to_doubles(), from = x.to_doubles();
    for (std::size_t row = 0; row < 2; ++row)
      for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k) {
        const std::size_t first = row * static_cast<std::size_t>(n), at = first + k;
        EXPECT_NEAR(y[at], from[at] + from[first], 1e-6);
      }
  }
  EXPECT_THROW(run(p, {wave({2, 5}, 0.4)}), error);  // 5 and 2
}

// The last row of an image's positions divides them all. Images of less than four rows of pixels have no positions.
TEST(open_operators, a_last_row_that_may_be_missing_broadcasts) {
  model_builder m(17);
  m.input("x", float_type, {"1", "1", "n", "4"}).output("y");
  auto& pool = m.node("AveragePool", {"x"}, {"rows"});
  graph_builder::attribute(pool, "kernel_shape", std::vector<std::int64_t>{4, 4});
  graph_builder::attribute(pool, "strides", std::vector<std::int64_t>{4, 4});
  m.integers("last", {1}, {-1}), m.integers("far", {1}, {INT64_MAX}), m.integers("axis", {1}, {2});
  m.node("Slice", {"rows", "last", "far", "axis"}, {"end"});
  m.node("Sub", {"rows", "end"}, {"y"});
  program p = m.import();
  for (std::int64_t n : {4, 8, 13}) {
    const auto y = run(p, {wave({1, 1, n, 4}, 0.3)})[0].to_doubles();
    ASSERT_EQ(y.size(), static_cast<std::size_t>(n / 4));
    EXPECT_EQ(y.back(), 0);
    if (n > 4) EXPECT_NE(y.front(), 0);
  }
}

// A sort is a TopK of all elements. Rounded numbers repeat, and equal ones keep their order.
TEST(open_operators, an_axis_of_any_size_is_sorted) {
  for (std::int64_t axis : {0, 1})
    for (std::int64_t largest : {0, 1})
      expect_same(
          [&](const std::vector<std::string>& dims) {
            model_builder m(18);
            m.input("x", float_type, dims).output("best").output("order");
            m.integers("axis", {}, {axis}), m.floats("five", {}, {5});
            m.node("Mul", {"x", "five"}, {"scaled"});
            m.node("Round", {"scaled"}, {"numbers"});
            m.node("Shape", {"x"}, {"sizes"});
            m.node("Gather", {"sizes", "axis"}, {"k"});
            m.node("Unsqueeze", {"k", "first"}, {"all"}), m.integers("first", {1}, {0});
            auto& node = m.node("TopK", {"numbers", "all"}, {"best", "order"});
            graph_builder::attribute(node, "axis", axis), graph_builder::attribute(node, "largest", largest);
            return m;
          },
          {"a", "b"}, {{1, 1}, {2, 7}, {9, 3}, {20, 20}});
}

// NaN ranks above every number, as it does for a known size.
TEST(open_operators, numbers_that_are_not_finite_are_sorted) {
  const literal x = literal::of<float>({element_type::f32, {6}}, {1, NAN, -INFINITY, INFINITY, NAN, 0});
  for (std::int64_t largest : {0, 1}) {
    model_builder m(18);
    m.input("x", float_type, {"n"}).output("best").output("order");
    m.node("Shape", {"x"}, {"all"});
    graph_builder::attribute(m.node("TopK", {"x", "all"}, {"best", "order"}), "largest", largest);
    const auto order = run(m.import(), {x})[1].to_int64();
    const std::vector<std::int64_t> falling{1, 4, 3, 0, 5, 2}, rising{2, 5, 0, 3, 1, 4};
    EXPECT_EQ(order, largest ? falling : rising);
  }
}

// CDist of onnxruntime, as nearest neighbours of scikit-learn are written for it.
TEST(open_operators, distances_of_rows) {
  for (const std::string metric : {"euclidean", "sqeuclidean"}) {
    model_builder m(18);
    m.input("x", float_type, {"n", "2"}).output("y").floats("known", {3, 2}, {0, 0, 3, 4, 1, 0});
    auto& node = m.node("CDist", {"x", "known"}, {"y"});
    node.set_domain("com.microsoft");
    auto& attribute = *node.add_attribute();
    attribute.set_name("metric"), attribute.set_type(::onnx::AttributeProto::STRING), attribute.set_s(metric);
    const auto got = run(m.import(), {literal::of<float>({element_type::f32, {1, 2}}, std::vector<float>{0, 0})});
    EXPECT_EQ(got[0].to_doubles(),
              metric == "euclidean" ? (std::vector<double>{0, 5, 1}) : (std::vector<double>{0, 25, 1}));
  }
}

// onnxruntime's optimizer fuses attention; torch's older exporter gives the axes of each input names of their own.
TEST(open_operators, the_mask_of_a_fused_attention_has_dimensions_of_its_own) {
  for (bool lengths : {true, false}) {
    model_builder m;
    std::vector<std::string> dims{"mask_batch"};
    if (!lengths) dims.push_back("mask_length");
    m.input("x", float_type, {"batch", "length", "4"}).input("mask", ::onnx::TensorProto::INT32, dims).output("y");
    m.floats("w", {4, 12}, std::vector<float>(48, 0.25F));
    m.floats("bias", {12}, std::vector<float>(12, 0.5F));
    auto& attention = m.node("Attention", {"x", "w", "bias", "mask"}, {"y"});
    attention.set_domain("com.microsoft");
    graph_builder::attribute(attention, "num_heads", 2);
    auto& contrib = *m.model.add_opset_import();
    contrib.set_domain("com.microsoft");
    contrib.set_version(1);
    const literal mask = lengths ? literal::from_doubles({element_type::i32, {1}}, std::vector<double>{2})
                                 : literal::from_doubles({element_type::i32, {1, 3}}, std::vector<double>{1, 1, 0});
    EXPECT_EQ(run(m.import(), {wave({1, 3, 4}, 0.3), mask})[0].type().dims, (std::vector<dim>{1, 3, 4}));
  }
}

// torch's exporter gives the past of the values a symbol of its own, and writes Attention from opset 23 on.
TEST(open_operators, keys_and_values_of_an_attention_have_one_length) {
  model_builder m(23);
  for (const char* name : {"q", "k", "v"}) m.input(name, float_type, {"b", "2", "s", "4"});
  m.input("past_k", float_type, {"b", "2", "p", "4"}).input("past_v", float_type, {"b", "2", "r", "4"});
  m.output("y").output("present_k").output("present_v");
  m.node("Neg", {"k"}, {"fresh_k"}), m.node("Neg", {"v"}, {"fresh_v"});
  graph_builder::attribute(m.node("Concat", {"past_k", "fresh_k"}, {"present_k"}), "axis", std::int64_t{2});
  graph_builder::attribute(m.node("Concat", {"past_v", "fresh_v"}, {"present_v"}), "axis", std::int64_t{2});
  m.node("Attention", {"q", "present_k", "present_v"}, {"y"});
  const program p = m.import();
  auto with_past = [&](std::int64_t keys, std::int64_t values) {
    std::vector<literal> all(3, wave({1, 2, 3, 4}, 0.3));
    all.push_back(wave({1, 2, keys, 4}, 0.4)), all.push_back(wave({1, 2, values, 4}, 0.5));
    return run(p, all)[0].type().dims;
  };
  for (std::int64_t past : {0, 1, 5}) EXPECT_EQ(with_past(past, past), (std::vector<dim>{1, 2, 3, 4}));
  EXPECT_THROW(with_past(5, 4), error);
}

}  // namespace
