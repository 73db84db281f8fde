// Sizes that a model computes from open dimensions: in floating point, with Pow, or as the image of GridSample.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/size_stages.hpp"
#include "test/aot/onnx/open_models.hpp"

namespace {

using namespace kiln;
using namespace kiln::test;

literal ramp(std::vector<std::int64_t> dims, float step) {
  shape type{element_type::f32, {dims.begin(), dims.end()}};
  std::vector<float> values(static_cast<std::size_t>(type.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::remainder(static_cast<float>(i) * step, 2.5f);
  return literal::of<float>(type, values);
}

// y is an array of `size` elements, where the nodes of `sized` compute "size" from the floats "length" (the size of x).
template <typename Nodes>
model_builder array_of_size(const Nodes& sized) {
  model_builder m;
  m.input("x", float_type, {"n"}).output("y");
  m.node("Shape", {"x"}, {"shape"});
  graph_builder::attribute(m.node("Cast", {"shape"}, {"length"}), "to", std::int64_t{float_type});
  sized(m);
  graph_builder::attribute(m.node("Cast", {"size"}, {"whole"}), "to", std::int64_t{int64_type});
  m.node("ConstantOfShape", {"whole"}, {"y"});
  return m;
}

std::int64_t size_for(const program& p, std::int64_t n) { return run(p, {ramp({n}, 1)}).type().element_count(); }

TEST(computed_sizes, multiples_of_a_patch_are_rounded_up_in_floats) {
  program p = array_of_size([](model_builder& m) {
                m.floats("two", {}, {2});
                m.node("Div", {"length", "two"}, {"half"});
                m.node("Unsqueeze", {"half", "axis"}, {"row"}), m.integers("axis", {1}, {0});
                m.node("Squeeze", {"row", "axis"}, {"same"});
                m.node("Ceil", {"same"}, {"patches"});
                m.node("Mul", {"patches", "two"}, {"size"});
              }).import();
  for (std::int64_t n : {1, 2, 3, 8, 9}) EXPECT_EQ(size_for(p, n), (n + 1) / 2 * 2) << n;
}

TEST(computed_sizes, quotients_and_dyadic_factors_are_rounded_down) {
  program third = array_of_size([](model_builder& m) {
                    m.floats("three", {}, {3});
                    m.node("Div", {"length", "three"}, {"part"});
                    m.node("Floor", {"part"}, {"size"});
                  }).import();
  program scaled = array_of_size([](model_builder& m) {
                     m.floats("scale", {1}, {0.75f}), m.floats("one", {1}, {1.5f});
                     m.node("Mul", {"length", "scale"}, {"part"});
                     m.node("Add", {"part", "one"}, {"size"});  // the Cast rounds
                   }).import();
  for (std::int64_t n : {1, 2, 3, 6, 10, 11}) {
    EXPECT_EQ(size_for(third, n), n / 3) << n;
    EXPECT_EQ(size_for(scaled, n), static_cast<std::int64_t>(static_cast<double>(n) * 0.75 + 1.5)) << n;
  }
}

// f32 rounds 10 * 0.7 to 7, the exact product of the two floats is less than 7.
TEST(computed_sizes, factors_that_floats_round_are_followed_step_by_step) {
  auto scaled_by = [](const char* rounding) {
    return array_of_size([rounding](model_builder& m) {
             m.floats("scale", {}, {0.7f});
             m.node("Mul", {"length", "scale"}, {"part"});
             m.node(rounding, {"part"}, {"size"});
           })
        .import();
  };
  program down = scaled_by("Floor"), up = scaled_by("Ceil"), nearest = scaled_by("Round"), cast = scaled_by("Identity");
  for (std::int64_t n : {1, 3, 5, 10, 11, 20}) {
    const float part = static_cast<float>(n) * 0.7f;
    EXPECT_EQ(size_for(down, n), static_cast<std::int64_t>(std::floor(part))) << n;
    EXPECT_EQ(size_for(up, n), static_cast<std::int64_t>(std::ceil(part))) << n;
    EXPECT_EQ(size_for(nearest, n), static_cast<std::int64_t>(std::nearbyint(part))) << n;
    EXPECT_EQ(size_for(cast, n), static_cast<std::int64_t>(part)) << n;
  }
  EXPECT_EQ(size_for(down, 10), 7);
}

// Steps are those of f32. A model that computes its sizes in doubles is refused if rounding matters.
TEST(computed_sizes, factors_that_doubles_round_are_applied_when_the_model_runs) {
  model_builder m = array_of_size([](model_builder& m) {
    m.floats("scale", {}, {0.7f});
    for (auto [from, to] : {std::pair("scale", "wide_scale"), std::pair("length", "wide_length")})
      graph_builder::attribute(m.node("Cast", {from}, {to}), "to", std::int64_t{::onnx::TensorProto::DOUBLE});
    m.node("Mul", {"wide_length", "wide_scale"}, {"part"});
    m.node("Floor", {"part"}, {"size"});
  });
  EXPECT_EQ(data_decided_sizes(m.import()), std::vector<std::string>{"value.whole.0"});
}

// torchvision's detection models: the shorter side becomes 64 unless the longer one would exceed 128.
TEST(computed_sizes, an_image_is_resized_by_a_scale_that_depends_on_its_size) {
  model_builder m;
  m.input("x", float_type, {"h", "w"}).output("y");
  m.node("Shape", {"x"}, {"shape"});
  auto reduced = [&](const char* op, const char* to) {
    graph_builder::attribute(m.node(op, {"shape"}, {std::string(to) + "_int"}), "keepdims", std::int64_t{0});
    graph_builder::attribute(m.node("Cast", {std::string(to) + "_int"}, {to}), "to", std::int64_t{float_type});
  };
  reduced("ReduceMin", "low"), reduced("ReduceMax", "high");
  m.floats("short", {}, {64}), m.floats("long", {}, {128});
  m.node("Reciprocal", {"low"}, {"low_inverse"});
  m.node("Mul", {"low_inverse", "short"}, {"by_low"});
  m.node("Div", {"long", "high"}, {"by_high"});
  m.node("Min", {"by_low", "by_high"}, {"scale"});
  graph_builder::attribute(m.node("Cast", {"shape"}, {"sides"}), "to", std::int64_t{float_type});
  m.node("Mul", {"sides", "scale"}, {"scaled"});
  m.node("Floor", {"scaled"}, {"rounded"});
  graph_builder::attribute(m.node("Cast", {"rounded"}, {"sizes"}), "to", std::int64_t{int64_type});
  m.node("Resize", {"x", "", "", "sizes"}, {"y"});
  program p = m.import();
  for (auto [h, w] : {std::pair<std::int64_t, std::int64_t>{48, 70}, {70, 48}, {30, 100}, {64, 64}, {33, 61}}) {
    const auto low = static_cast<float>(std::min(h, w)), high = static_cast<float>(std::max(h, w));
    const float inverse = 1 / low, by_low = inverse * 64, by_high = 128 / high, scale = std::min(by_low, by_high);
    const float scaled_h = static_cast<float>(h) * scale, scaled_w = static_cast<float>(w) * scale;
    const auto y = run(p, {ramp({h, w}, 0.3f)}).type();
    EXPECT_EQ(y.dims[0], dim(static_cast<std::int64_t>(scaled_h))) << h << "x" << w;
    EXPECT_EQ(y.dims[1], dim(static_cast<std::int64_t>(scaled_w))) << h << "x" << w;
  }
}

// torch's dynamo exporter writes (n * n * 2) / n with Pow.
// As in a letterbox: the image fits 64 x 64 if both axes are scaled by the smaller quotient.
TEST(computed_sizes, the_smallest_of_quotients_is_followed_step_by_step) {
  model_builder m;
  m.input("x", float_type, {"h", "w"}).output("y");
  m.node("Shape", {"x"}, {"shape"});
  graph_builder::attribute(m.node("Cast", {"shape"}, {"sizes"}), "to", std::int64_t{float_type});
  m.floats("wanted", {2}, {64, 64});
  m.node("Div", {"wanted", "sizes"}, {"ratios"});
  m.node("ReduceMin", {"ratios"}, {"ratio"});
  m.node("Mul", {"sizes", "ratio"}, {"scaled"});
  m.node("Round", {"scaled"}, {"rounded"});
  graph_builder::attribute(m.node("Cast", {"rounded"}, {"dims"}), "to", std::int64_t{int64_type});
  m.node("ConstantOfShape", {"dims"}, {"y"});
  program p = m.import();
  for (auto [h, w] : {std::pair{64, 64}, {50, 90}, {100, 30}, {33, 71}}) {
    const float height = static_cast<float>(h), width = static_cast<float>(w);
    const float ratio = std::min(64 / height, 64 / width);
    const shape made = run(p, {ramp({h, w}, 1)}).type();
    EXPECT_EQ(made.dims.at(0), dim(static_cast<std::int64_t>(std::nearbyint(height * ratio)))) << h << " x " << w;
    EXPECT_EQ(made.dims.at(1), dim(static_cast<std::int64_t>(std::nearbyint(width * ratio)))) << h << " x " << w;
  }
}

// JAX pools NHWC images with windows over all axes.
TEST(computed_sizes, a_window_leaves_batch_and_channels_alone) {
  model_builder m;
  m.input("x", float_type, {"1", "1", "n", "4", "4", "2"}).output("y");
  auto& pool = m.node("MaxPool", {"x"}, {"y"});
  graph_builder::attribute(pool, "kernel_shape", std::vector<std::int64_t>{1, 2, 2, 1});
  graph_builder::attribute(pool, "strides", std::vector<std::int64_t>{1, 2, 2, 1});
  program p = m.import();
  literal x = ramp({1, 1, 3, 4, 4, 2}, 0.7f);
  literal got = run(p, {x});
  ASSERT_EQ(got.type().str(), "f32[1, 1, 3, 2, 2, 2]");
  auto at = [&](int n, int h, int w, int c) { return x.at(((n * 4 + h) * 4 + w) * 2 + c); };
  std::int64_t i = 0;
  for (int n = 0; n < 3; ++n)
    for (int h = 0; h < 4; h += 2)
      for (int w = 0; w < 4; w += 2)
        for (int c = 0; c < 2; ++c)
          EXPECT_EQ(got.at(i++),
                    std::max({at(n, h, w, c), at(n, h + 1, w, c), at(n, h, w + 1, c), at(n, h + 1, w + 1, c)}));
}

TEST(computed_sizes, powers_are_products) {
  model_builder m;
  m.input("x", float_type, {"n"}).output("y");
  m.integers("two", {}, {2});
  m.node("Shape", {"x"}, {"n"});
  m.node("Pow", {"n", "two"}, {"square"});
  m.node("Mul", {"square", "two"}, {"double"});
  m.node("Div", {"double", "n"}, {"size"});
  m.node("ConstantOfShape", {"size"}, {"y"});
  program p = m.import();
  for (std::int64_t n : {1, 2, 7}) EXPECT_EQ(size_for(p, n), 2 * n);
}

// DPT reads the side of its square of patches as int(patches ** 0.5).
TEST(computed_sizes, the_side_of_a_square_is_a_root) {
  for (double exponent : {0.5, 1.0, 2.0}) {
    program p = array_of_size([&](model_builder& m) {
                  m.floats("exponent", {}, {static_cast<float>(exponent)});
                  m.node("Pow", {"length", "exponent"}, {"size"});
                }).import();
    for (std::int64_t n : {1, 2, 15, 16, 17, 100})
      EXPECT_EQ(size_for(p, n), static_cast<std::int64_t>(std::pow(static_cast<double>(n), exponent))) << n;
  }
}

// The number of windows in n elements is 0 for n < 4, which are refused when n is known.
TEST(computed_sizes, a_divisor_that_only_some_sizes_make_0) {
  model_builder m;
  m.input("x", float_type, {"n"}).output("y");
  m.integers("four", {1}, {4}), m.integers("twelve", {1}, {12});
  m.node("Shape", {"x"}, {"n"});
  m.node("Div", {"n", "four"}, {"windows"});
  m.node("Mul", {"n", "twelve"}, {"total"});
  m.node("Div", {"total", "windows"}, {"size"});
  m.node("ConstantOfShape", {"size"}, {"y"});
  program p = m.import();
  for (std::int64_t n : {4, 6, 8}) EXPECT_EQ(size_for(p, n), n * 12 / (n / 4)) << n;
  EXPECT_THROW(size_for(p, 3), error);
}

// Returns the reference's first output where the elements of the first input decide sizes.
literal output_of_values(const program& p, const std::vector<literal>& inputs) {
  std::vector<given_shape> shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    value parameter = p.main().parameters()[i];
    shapes.push_back({module::parameter_name(parameter), parameter.type(), inputs[i].type()});
  }
  dim_bindings sizes = bind_shapes(shapes);
  add_sizes(sizes, bind_values(p.symbols, shapes[0].name, inputs[0]), shapes[0].name);
  return evaluate(p.bind(sizes).main(), inputs)[0];
}

// Masks of padded batches are as long as the longest sequence.
// As Funnel's positions, of which the first is taken.
TEST(computed_sizes, an_element_of_a_range_that_is_open) {
  const auto element = [](std::int64_t index, std::int64_t type) {
    return array_of_size([=](model_builder& m) {
             m.integers("zero", {}, {0}), m.integers("one", {}, {1}), m.integers("two", {}, {2});
             m.node("Squeeze", {"shape"}, {"end"});
             m.node("Range", {"zero", "end", "one"}, {"places"});
             m.node("Mul", {"places", "two"}, {"even"});
             m.node("Add", {"even", "one"}, {"odd"});
             m.integers("minus", {1}, {-1});
             graph_builder::attribute(m.node("Concat", {"minus", "odd"}, {"joined"}), "axis", 0);
             graph_builder::attribute(m.node("Cast", {"joined"}, {"numbers"}), "to", type);
             m.integers("at", {1}, {index});
             m.node("Gather", {"numbers", "at"}, {"size"});
           })
        .import();
  };
  for (std::int64_t n : {3, 5}) {
    EXPECT_EQ(size_for(element(1, float_type), n), 1) << n;
    for (std::int64_t type : {float_type, int64_type}) EXPECT_EQ(size_for(element(-1, type), n), 2 * n - 1) << n;
  }
}

TEST(computed_sizes, a_mask_is_as_long_as_the_largest_length) {
  for (bool floats : {false, true}) {
    model_builder m;
    m.input("lengths", int64_type, {"n"}).output("y");
    m.node("ReduceMax", {"lengths"}, {"longest"});
    m.node("Squeeze", {"longest"}, {"limit"});
    graph_builder::attribute(m.node("Cast", {"limit"}, {"end"}), "to", std::int64_t{floats ? float_type : int64_type});
    if (floats) m.floats("zero", {}, {0}), m.floats("one", {}, {1});
    else m.integers("zero", {}, {0}), m.integers("one", {}, {1});
    m.node("Range", {"zero", "end", "one"}, {"y"});
    program p = m.import();
    EXPECT_TRUE(p.symbols.contains("value.lengths.max"));
    EXPECT_EQ(output_of_values(p, {literal::from_int64({3, 7, 2})}).to_doubles().size(), 7u);
    EXPECT_EQ(output_of_values(p, {literal::from_int64({1})}).to_doubles(), std::vector<double>{0});
  }
}

// A sequence that is added to such a mask must have the same length.
TEST(computed_sizes, a_length_that_data_decide_must_fit_the_sequence) {
  model_builder m;
  m.input("lengths", int64_type, {"n"}).input("x", float_type, {"t"}).output("y");
  m.node("ReduceMax", {"lengths"}, {"longest"});
  m.floats("one", {1}, {1});
  m.node("Expand", {"one", "longest"}, {"mask"});
  m.node("Add", {"x", "mask"}, {"y"});
  program p = m.import();
  EXPECT_EQ(output_of_values(p, {literal::from_int64({2, 3}), ramp({3}, 1)}).to_doubles().size(), 3u);
  EXPECT_THROW(output_of_values(p, {literal::from_int64({2, 2}), ramp({3}, 1)}), error);
}

// torch's repeat_interleave: the last of the running sums of the repeats. A mask of booleans is counted.
TEST(computed_sizes, repeats_add_up_to_a_size) {
  model_builder running;
  running.input("repeats", int64_type, {"n"}).output("y");
  running.integers("axis", {}, {0}), running.integers("last", {1}, {-1}), running.floats("one", {1}, {1});
  running.node("CumSum", {"repeats", "axis"}, {"sums"});
  running.node("Gather", {"sums", "last"}, {"total"});
  running.node("Expand", {"one", "total"}, {"y"});
  program p = running.import();
  EXPECT_EQ(output_of_values(p, {literal::from_int64({3, 0, 4})}).to_doubles().size(), 7u);
  model_builder mask;
  mask.input("mask", bool_type, {"n"}).output("y");
  mask.floats("one", {1}, {1});
  graph_builder::attribute(mask.node("Cast", {"mask"}, {"numbers"}), "to", std::int64_t{int64_type});
  mask.node("ReduceSum", {"numbers"}, {"total"});
  mask.node("Expand", {"one", "total"}, {"y"});
  program q = mask.import();
  const literal bits = literal::of<std::uint8_t>({element_type::boolean, {4}}, {true, false, true, true});
  EXPECT_EQ(output_of_values(q, {bits}).to_doubles().size(), 3u);
}

// index_copy writes one element of a shape. The offsets of levels are running sums of products.
TEST(computed_sizes, elements_of_shapes_are_written_and_reduced_along_an_axis) {
  model_builder m(17);
  m.input("x", float_type, {"n", "k"}).output("y");
  m.integers("zero", {1}, {0}), m.integers("one", {1}, {1}), m.integers("five", {1}, {5}),
      m.integers("two", {2}, {2, 2});
  m.node("Shape", {"x"}, {"shape"});
  m.node("ScatterElements", {"shape", "zero", "five"}, {"written"});
  graph_builder::attribute(m.node("Concat", {"shape", "written"}, {"four"}), "axis", std::int64_t{0});
  m.node("Reshape", {"four", "two"}, {"levels"});
  auto& areas = m.node("ReduceProd", {"levels"}, {"areas"});
  graph_builder::attribute(areas, "axes", std::vector<std::int64_t>{1}),
      graph_builder::attribute(areas, "keepdims", std::int64_t{0});
  m.node("CumSum", {"areas", "zero"}, {"ends"});
  m.node("Gather", {"ends", "one"}, {"size"});
  m.node("ConstantOfShape", {"size"}, {"y"});
  program p = m.import();
  for (std::int64_t n : {1, 3})
    for (std::int64_t k : {2, 4}) EXPECT_EQ(run(p, {ramp({n, k}, 1)}).type().element_count(), n * k + 5 * k);
}

// An image of open size gives the samples that the same image of known size gives.
TEST(computed_sizes, an_image_of_open_size_is_sampled) {
  for (const char* pads : {"zeros", "border", "reflection"})
    for (const char* mode : {"bilinear", "nearest", "bicubic"})
      for (std::int64_t corners : {0, 1}) {
        auto sampling = [&](const std::vector<std::string>& image) {
          model_builder m;
          m.input("x", float_type, image).input("grid", float_type, {"b", "2", "q", "2"}).output("y");
          auto& node = m.node("GridSample", {"x", "grid"}, {"y"});
          graph_builder::attribute(node, "align_corners", corners);
          for (auto [name, text] : {std::pair("mode", mode), std::pair("padding_mode", pads)}) {
            auto& a = *node.add_attribute();
            a.set_name(name), a.set_type(::onnx::AttributeProto::STRING), a.set_s(text);
          }
          return m.import();
        };
        program open = sampling({"b", "3", "h", "w"});
        for (auto [h, w] : {std::pair<std::int64_t, std::int64_t>{5, 7}, {1, 4}, {2, 1}}) {
          std::vector<literal> inputs{ramp({2, 3, h, w}, 0.7f), ramp({2, 2, 9, 2}, 0.31f)};
          auto want = run(sampling({"b", "3", std::to_string(h), std::to_string(w)}), inputs).to_doubles();
          auto got = run(open, inputs).to_doubles();
          ASSERT_EQ(got.size(), want.size());
          for (std::size_t i = 0; i < got.size(); ++i)
            ASSERT_NEAR(got[i], want[i], 1e-5) << mode << ' ' << pads << ' ' << corners << ' ' << h << 'x' << w;
        }
      }
}

TEST(computed_sizes, a_deformable_convolution_takes_an_image_of_open_size) {
  auto convolution = [](const std::string& h, const std::string& w, const std::string& rows,
                        const std::string& columns) {
    model_builder m(19);
    m.input("x", float_type, {"b", "2", h, w}).input("offsets", float_type, {"b", "18", rows, columns}).output("y");
    std::vector<float> weights(2 * 9);
    std::iota(weights.begin(), weights.end(), -4.0f);
    m.floats("weights", {1, 2, 3, 3}, weights);
    graph_builder::attribute(m.node("DeformConv", {"x", "weights", "offsets"}, {"y"}), "pads",
                             std::vector<std::int64_t>{1, 1, 1, 1});
    return m.import();
  };
  program open = convolution("h", "w", "h", "w"), named = convolution("h", "w", "rows", "columns");
  for (auto [h, w] : {std::pair<std::int64_t, std::int64_t>{5, 4}, {1, 3}}) {
    std::vector<literal> inputs{ramp({2, 2, h, w}, 0.7f), ramp({2, 18, h, w}, 0.31f)};
    std::string height = std::to_string(h), width = std::to_string(w);
    auto want = run(convolution(height, width, height, width), inputs).to_doubles();
    EXPECT_EQ(run(open, inputs).to_doubles(), want);
    EXPECT_EQ(run(named, inputs).to_doubles(), want);
  }
}

// A stride that reaches the end of a larger window makes one window of the whole axis.
TEST(computed_sizes, with_ceil_mode_a_pooling_window_may_be_larger_than_the_image) {
  model_builder m;
  m.input("x", float_type, {"1", "1", "h", "w"}).output("y");
  auto& pool = m.node("AveragePool", {"x"}, {"y"});
  graph_builder::attribute(pool, "kernel_shape", std::vector<std::int64_t>{32, 32});
  graph_builder::attribute(pool, "strides", std::vector<std::int64_t>{32, 32});
  graph_builder::attribute(pool, "ceil_mode", std::int64_t{1});
  program p = m.import();
  literal x = ramp({1, 1, 3, 4}, 0.7f);
  auto all = x.to_doubles();
  auto got = run(p, {x}).to_doubles();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_NEAR(got[0], std::accumulate(all.begin(), all.end(), 0.0) / 12, 1e-6);
}

}  // namespace
