// Open dimensions in the importer: which sizes stay symbolic, which follow from bounds, and which must be equal. Each
// model is imported once and then run by the reference for several sizes.
#include <gtest/gtest.h>

#include "test/aot/onnx/open_models.hpp"

namespace {

using namespace kiln;
using namespace kiln::test;

void set_int(::onnx::NodeProto& node, const char* name, std::int64_t x) { graph_builder::attribute(node, name, x); }

// y = x[start:end:step].
model_builder slicing(std::int64_t start, std::int64_t end, std::int64_t step) {
  model_builder m;
  m.input("x", float_type, {"n"}).output("y");
  m.integers("start", {1}, {start});
  m.integers("end", {1}, {end});
  m.integers("axis", {1}, {0});
  m.integers("step", {1}, {step});
  m.node("Slice", {"x", "start", "end", "axis", "step"}, {"y"});
  return m;
}

TEST(open_dims, slices_are_clamped_to_the_axis_as_numpy_clamps) {
  for (std::int64_t step : {1, 2, -1, -2})
    for (std::int64_t start : {-9, -3, -1, 0, 2, 7})
      for (std::int64_t end : {-9, -2, 0, 3, 9}) {
        program p = slicing(start, end, step).import();
        for (std::int64_t n : {1, 2, 4, 6, 11}) {
          auto clamp = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
            return std::clamp(at < 0 ? at + n : at, low, high);
          };
          std::int64_t from = step > 0 ? clamp(start, 0, n) : clamp(start, 0, n - 1),
                       to = step > 0 ? clamp(end, 0, n) : clamp(end, -1, n - 1);
          std::vector<double> expected;
          for (std::int64_t i = from; step > 0 ? i < to : i > to; i += step) expected.push_back(static_cast<double>(i));
          EXPECT_EQ(run(p, {counting({n})}).to_doubles(), expected)
              << start << ":" << end << ":" << step << " of " << n;
        }
      }
}

// A table of 16 rows from which rows past, ..., past + seq - 1 are taken, as decoders look up their positions.
TEST(open_dims, a_slice_may_start_at_a_symbol_and_its_end_is_clamped) {
  model_builder m;
  m.input("past", float_type, {"p"}).input("ids", float_type, {"s"}).output("y");
  m.floats("table", {16}, [] {
    std::vector<float> v(16);
    std::iota(v.begin(), v.end(), 0.0f);
    return v;
  }());
  m.integers("axis", {1}, {0});
  m.node("Shape", {"past"}, {"from"});
  m.node("Shape", {"ids"}, {"count"});
  m.node("Add", {"from", "count"}, {"to"});
  m.node("Slice", {"table", "from", "to", "axis"}, {"y"});
  program p = m.import();
  EXPECT_EQ(run(p, {counting({3}), counting({4})}).to_doubles(), (std::vector<double>{3, 4, 5, 6}));
  EXPECT_EQ(run(p, {counting({14}), counting({4})}).to_doubles(), (std::vector<double>{14, 15}));
  EXPECT_EQ(run(p, {counting({20}), counting({4})}).type().element_count(), 0);
}

// The slice starts at n - 4, which would count from the end of x if n were less than 4.
TEST(open_dims, a_slice_that_may_start_before_the_axis_is_checked_when_the_sizes_are_known) {
  model_builder m;
  m.input("x", float_type, {"n"}).output("y");
  m.integers("axis", {1}, {0}), m.integers("four", {1}, {4}), m.integers("end", {1}, {1000000});
  m.node("Shape", {"x"}, {"length"});
  m.node("Sub", {"length", "four"}, {"from"});
  m.node("Slice", {"x", "from", "end", "axis"}, {"y"});
  program p = m.import();
  EXPECT_EQ(run(p, {counting({6})}).to_doubles(), (std::vector<double>{2, 3, 4, 5}));
  std::string why = refusal([&] { run(p, {counting({3})}); });
  EXPECT_NE(why.find("slices at"), std::string::npos) << why;
}

TEST(open_dims, integer_division_of_shapes_rounds_towards_zero) {
  model_builder m;
  m.input("x", float_type, {"s"}).output("y", int64_type);
  m.integers("eight", {1}, {8});
  m.integers("four", {1}, {4});
  m.integers("ten", {1}, {10});
  m.node("Shape", {"x"}, {"n"});
  m.node("Sub", {"n", "eight"}, {"less"});
  m.node("Div", {"less", "four"}, {"quotient"});  // (s - 8) / 4: -1 for s = 3, where the floor is -2
  m.node("Add", {"quotient", "ten"}, {"size"});
  m.node("ConstantOfShape", {"size"}, {"zeros"});
  m.node("Shape", {"zeros"}, {"y"});
  program p = m.import();
  for (std::int64_t s : {1, 3, 4, 5, 8, 9, 12, 15})
    EXPECT_EQ(run(p, {counting({s})}).to_int64(), (std::vector<std::int64_t>{(s - 8) / 4 + 10})) << s;
}

TEST(open_dims, a_name_that_is_an_expression_of_others_becomes_it) {
  for (const char* name : {"past + seq", "past+seq", "seq + past", "(past) + seq", "past + seq + 0"}) {
    model_builder m;
    m.input("old", float_type, {"past", "4"})
        .input("fresh", float_type, {"seq", "4"})
        .input("mask", float_type, {name, "4"})
        .output("y");
    set_int(m.node("Concat", {"old", "fresh"}, {"all"}), "axis", 0);
    m.node("Add", {"all", "mask"}, {"y"});
    program p = m.import();
    EXPECT_EQ(p.main().parameters()[2].type().dims[0], dim::symbol("past") + dim::symbol("seq")) << name;
    EXPECT_TRUE(p.guards.empty());
    EXPECT_EQ(p.symbols.size(), 2u);
    EXPECT_EQ(run(p, {counting({2, 4}), counting({3, 4}), counting({5, 4})}).type().dims[0], dim(5));
    EXPECT_NE(refusal([&] { run(p, {counting({2, 4}), counting({3, 4}), counting({6, 4})}); }).find("input 'mask'"),
              std::string::npos);
  }
}

TEST(open_dims, names_that_are_no_expressions_stay_one_symbol) {
  auto meaning = [](const std::string& name, std::vector<std::string> others) {
    others.push_back(name);
    return onnx_import::read_dim_params(others).meanings.at(name).str();
  };
  EXPECT_EQ(meaning("batch-size", {}), "batch_size");  // a hyphen
  EXPECT_EQ(meaning("batch-size", {"batch"}), "batch_size");
  EXPECT_EQ(meaning("total-past", {"total", "past"}), "-1*past+total");
  EXPECT_EQ(meaning("a b", {"a", "b"}), "a_b");
  EXPECT_EQ(meaning("unk__123", {}), "unk__123");
  EXPECT_EQ(meaning("a+b", {}), "a_b");  // neither is known
  EXPECT_EQ(meaning("2*s0", {}), "2*s0");
  EXPECT_EQ(meaning("s0//2 + 1", {"s0"}), "1+floor(s0/2)");
  EXPECT_EQ(meaning("floor(s0/2)", {"s0"}), "floor(s0/2)");
  EXPECT_EQ(meaning("s0 % 4", {"s0"}), "-4*floor(s0/4)+s0");
  EXPECT_EQ(meaning("s0//", {"s0"}), "s0__");
  EXPECT_EQ(meaning("s0//0", {"s0"}), "s0__0");
}

// Where(shape == -1, 1, shape), the form in which torch exports expand().
TEST(open_dims, comparisons_are_decided_by_bounds) {
  model_builder m;
  m.input("a", float_type, {"p"}).input("b", float_type, {"s"}).output("y");
  m.floats("one", {1}, {1});
  m.integers("minus", {1}, {-1});
  m.integers("ones", {1}, {1});
  m.node("Shape", {"a"}, {"p"});
  m.node("Shape", {"b"}, {"s"});
  m.node("Mul", {"p", "s"}, {"ps"});
  m.node("Add", {"ps", "p"}, {"size"});
  m.node("Equal", {"size", "minus"}, {"free"});
  m.node("Where", {"free", "ones", "size"}, {"target"});
  m.node("Expand", {"one", "target"}, {"y"});
  program p = m.import(with({"p=0:9"}));
  EXPECT_EQ(run(p, {counting({3}), counting({4})}).type().dims[0], dim(15));
  EXPECT_EQ(run(p, {counting({0}), counting({4})}).type().dims[0], dim(0));
}

TEST(open_dims, a_weight_says_how_many_channels_an_image_has) {
  model_builder m;
  m.input("x", float_type, {"n", "channels", "h", "w"}).output("y");
  m.floats("weight", {2, 3, 1, 1}, {1, 2, 3, 4, 5, 6});
  m.node("Conv", {"x", "weight"}, {"y"});
  program p = m.import();
  EXPECT_EQ(p.main().parameters()[0].type().dims[1], dim(3));
  EXPECT_FALSE(p.symbols.contains("channels"));
  EXPECT_EQ(run(p, {counting({1, 3, 2, 2})}).type().dims[1], dim(2));
  EXPECT_NE(refusal([&] { run(p, {counting({1, 4, 2, 2})}); }).find("input 'x'"), std::string::npos);
}

TEST(open_dims, symbols_that_meet_become_one) {
  model_builder m;
  m.input("a", float_type, {"p", "s"})
      .input("b", float_type, {"total", "s"})
      .input("c", float_type, {"q", "t"})
      .output("y");
  set_int(m.node("Concat", {"a", "c"}, {"ac"}), "axis", 0);
  m.node("Add", {"ac", "b"}, {"y"});
  program p = m.import(with({"total=2:9", "t=1:4"}));
  EXPECT_EQ(p.main().parameters()[1].type().dims[0], dim::symbol("p") + dim::symbol("q"));
  EXPECT_EQ(p.main().parameters()[0].type().dims[1], p.main().parameters()[2].type().dims[1]);
  EXPECT_EQ(run(p, {counting({2, 3}), counting({5, 3}), counting({3, 3})}).type().dims[0], dim(5));
  EXPECT_NE(refusal([&] { run(p, {counting({2, 3}), counting({6, 3}), counting({3, 3})}); }), "");
}

// Sizes are halved and doubled again, as in a U-Net: this is only valid for even images.
model_builder half_and_back() {
  model_builder m;
  m.input("x", float_type, {"1", "1", "h", "w"}).output("y");
  m.floats("scales", {4}, {1, 1, 2, 2});
  auto& pool = m.node("MaxPool", {"x"}, {"small"});
  graph_builder::attribute(pool, "kernel_shape", std::vector<std::int64_t>{2, 2});
  graph_builder::attribute(pool, "strides", std::vector<std::int64_t>{2, 2});
  m.node("Resize", {"small", "", "scales"}, {"back"});
  set_int(m.node("Concat", {"x", "back"}, {"y"}), "axis", 1);
  return m;
}

TEST(open_dims, what_only_some_sizes_make_equal_is_checked_when_the_sizes_are_known) {
  program p = half_and_back().import();
  EXPECT_EQ(p.guards.size(), 4u);  // of two axes: the halves fit, and there is something to halve
  EXPECT_EQ(run(p, {counting({1, 1, 4, 6})}).type().dims[1], dim(2));
  std::string why = refusal([&] { run(p, {counting({1, 1, 5, 6})}); });
  EXPECT_NE(why.find("dimensions 'h' = 5 and '2*floor(h/2)' = 4 must be equal"), std::string::npos) << why;
  EXPECT_NE(why.find("Concat_node"), std::string::npos) << why;
  // 4 x 9 and 6 x 6 have the same number of elements, but each axis must be checked.
  EXPECT_NE(refusal([&] { run(p, {counting({1, 1, 9, 4})}); }), "");
}

TEST(open_dims, images_are_resized_to_the_size_of_others) {
  model_builder m;
  m.input("x", float_type, {"1", "1", "h"}).input("like", float_type, {"1", "1", "to"}).output("y");
  m.node("Shape", {"like"}, {"sizes"});
  m.node("Resize", {"x", "", "", "sizes"}, {"y"});
  program p = m.import();
  EXPECT_EQ(run(p, {counting({1, 1, 2}), counting({1, 1, 4})}).to_doubles(), (std::vector<double>{0, 0, 1, 1}));
  EXPECT_EQ(run(p, {counting({1, 1, 3}), counting({1, 1, 3})}).to_doubles(), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(run(p, {counting({1, 1, 4}), counting({1, 1, 2})}).to_doubles(), (std::vector<double>{0, 2}));
}

// Padded to a multiple of 4 at the end or at the beginning, as windowed attention needs it.
TEST(open_dims, pads_may_follow_from_the_image) {
  for (const char* mode : {"constant", "edge", "reflect"})
    for (bool front : {false, true}) {
      model_builder m;
      m.input("x", float_type, {"n"}).output("y");
      m.integers("four", {1}, {4});
      m.integers("none", {1}, {0});
      m.node("Shape", {"x"}, {"n"});
      m.node("Mod", {"n", "four"}, {"rest"});
      m.node("Sub", {"four", "rest"}, {"missing"});
      m.node("Mod", {"missing", "four"}, {"pad"});
      set_int(
          m.node("Concat", front ? std::vector<std::string>{"pad", "none"} : std::vector<std::string>{"none", "pad"},
                 {"pads"}),
          "axis", 0);
      auto& a = *m.node("Pad", {"x", "pads"}, {"y"}).add_attribute();
      a.set_name("mode");
      a.set_type(::onnx::AttributeProto::STRING);
      a.set_s(mode);
      program p = m.import();
      for (std::int64_t n : {4, 5, 6, 7, 8}) {
        std::int64_t pad = (4 - n % 4) % 4;
        std::vector<double> expected;
        for (std::int64_t i = front ? -pad : 0; i < (front ? n : n + pad); ++i) {
          std::int64_t from = i < 0    ? (mode == std::string("reflect") ? -i : 0)
                              : i >= n ? (mode == std::string("reflect") ? 2 * n - 2 - i : n - 1)
                                       : i;
          expected.push_back((i < 0 || i >= n) && mode == std::string("constant") ? 0 : static_cast<double>(from));
        }
        EXPECT_EQ(run(p, {counting({n})}).to_doubles(), expected) << mode << " " << front << " " << n;
      }
    }
}

TEST(open_dims, an_axis_is_split_into_parts_that_follow_from_it) {
  model_builder m(18);
  m.input("x", float_type, {"n"}).output("y");
  auto& split = m.node("Split", {"x"}, {"a", "b", "c"});
  set_int(split, "num_outputs", 3);
  set_int(m.node("Concat", {"c", "b", "a"}, {"y"}), "axis", 0);
  program p = m.import(with({"n=3:9"}));
  EXPECT_EQ(run(p, {counting({7})}).to_doubles(), (std::vector<double>{6, 3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(run(p, {counting({6})}).to_doubles(), (std::vector<double>{4, 5, 2, 3, 0, 1}));
}

// A decoder whose first step has no past: an input decides which branch is taken, and so the size of its result.
TEST(open_dims, a_small_input_or_a_shape_decides_between_branches_of_different_sizes) {
  for (bool by_input : {true, false}) {
    model_builder m;
    if (by_input) m.input("cached", bool_type, {"1"});
    m.input("past", float_type, {"p"}).input("x", float_type, {"s"}).output("y");
    if (!by_input) {
      m.integers("zero", {1}, {0});
      m.node("Shape", {"past"}, {"length"});
      m.node("Greater", {"length", "zero"}, {"cached"});
    }
    auto& decide = m.node("If", {"cached"}, {"y"});
    graph_builder yes(graph_builder::body(decide, "then_branch")), no(graph_builder::body(decide, "else_branch"));
    set_int(yes.node("Concat", {"past", "x"}, {"both"}), "axis", 0);
    yes.output("both");
    no.node("Neg", {"x"}, {"negative"});
    no.output("negative");
    program p = m.import(with({"p=0:8"}));
    EXPECT_EQ(p.symbols.contains("value.cached.0"), by_input);
    for (std::int64_t past : {0, 2}) {
      std::vector<literal> inputs{counting({past}), counting({3})};
      std::vector<given_shape> shapes;
      for (std::size_t i = 0; i < 2; ++i)
        shapes.push_back({i ? "x" : "past", p.main().parameters()[i + by_input].type(), inputs[i].type()});
      dim_bindings bindings = bind_shapes(shapes);
      if (by_input) {
        inputs.insert(inputs.begin(), literal::filled({element_type::boolean, {1}}, past > 0));
        bindings.merge(bind_values(p.symbols, "cached", inputs[0]));
      }
      auto expected = past ? std::vector<double>{0, 1, 0, 1, 2} : std::vector<double>{0, -1, -2};
      EXPECT_EQ(evaluate(p.bind(bindings).main(), inputs)[0].to_doubles(), expected) << by_input << past;
    }
  }
}

// If data selects a branch, a branch may require sizes that the other one does not. The small input that selects
// becomes a symbol.
TEST(open_dims, sizes_count_only_for_the_branch_that_is_taken) {
  model_builder m;
  m.input("rate", int64_type, {}).input("x", float_type, {"1", "n"}).output("y");
  m.tensor("fast", int64_type, {}).add_int64_data(16);
  m.integers("axis", {1}, {1}), m.integers("axes", {1}, {0});
  m.node("Equal", {"rate", "fast"}, {"is_fast"});
  auto& decide = m.node("If", {"is_fast"}, {"y"});
  graph_builder yes(graph_builder::body(decide, "then_branch")), no(graph_builder::body(decide, "else_branch"));
  for (auto* branch : {&yes, &no}) {
    const std::string prefix = branch == &yes ? "then_" : "else_";
    auto& pool = branch->node("MaxPool", {"x3"}, {prefix + "p"});
    graph_builder::attribute(pool, "kernel_shape", std::vector<std::int64_t>{branch == &yes ? 4 : 2});
    graph_builder::attribute(pool, "strides", std::vector<std::int64_t>{branch == &yes ? 4 : 2});
    branch->node("Squeeze", {prefix + "p", "last"}, {prefix + "y"});
    branch->output(prefix + "y");
  }
  m.integers("last", {1}, {2});
  m.graph.mutable_node()->Add()->CopyFrom(m.graph.node(1));
  auto& unsqueeze = *m.graph.mutable_node(1);
  unsqueeze.Clear();
  unsqueeze.set_op_type("Unsqueeze"), unsqueeze.set_name("Unsqueeze_node");
  unsqueeze.add_input("x"), unsqueeze.add_input("axes"), unsqueeze.add_output("x3");
  program p = m.import();
  auto answer = [&](std::int64_t rate, std::int64_t n) {
    std::vector<literal> inputs{literal::from_int64({rate}).reshaped({}), counting({1, n})};
    std::vector<given_shape> shapes{{"x", p.main().parameters()[1].type(), inputs[1].type()}};
    dim_bindings bindings = bind_shapes(shapes);
    bindings.merge(bind_values(p.symbols, "rate", inputs[0]));
    return evaluate(p.bind(bindings).main(), inputs)[0].to_doubles();
  };
  EXPECT_EQ(answer(16, 4), (std::vector<double>{3}));
  EXPECT_EQ(answer(8, 2), (std::vector<double>{1}));
  EXPECT_NE(refusal([&] { answer(16, 8); }), "");
}

TEST(open_dims, sizes_that_are_inputs_are_symbols) {
  model_builder m;
  m.input("x", float_type, {"6"}).input("sizes", int64_type, {"2"}).output("y");
  m.node("Reshape", {"x", "sizes"}, {"y"});
  program p = m.import();
  EXPECT_TRUE(p.symbols.contains("value.sizes.1"));
  literal sizes = literal::from_int64({2, 3});
  program bound = p.bind(bind_values(p.symbols, "sizes", sizes));
  EXPECT_EQ(bound.main().outputs()[0].type(), (shape{element_type::f32, {2, 3}}));
  EXPECT_NE(refusal([&] { p.bind(bind_values(p.symbols, "sizes", literal::from_int64({2, 2}))); }), "");
}

// The operators that keras and tf2onnx emit.
TEST(open_dims, auto_pad_with_strides_pads_by_the_size_of_the_image) {
  model_builder m;
  m.input("x", float_type, {"1", "1", "n"}).output("y");
  m.floats("weight", {1, 1, 3}, {1, 1, 1});
  auto& conv = m.node("Conv", {"x", "weight"}, {"y"});
  graph_builder::attribute(conv, "strides", std::vector<std::int64_t>{2});
  auto& pad = *conv.add_attribute();
  pad.set_name("auto_pad");
  pad.set_type(::onnx::AttributeProto::STRING);
  pad.set_s("SAME_UPPER");
  program open = m.import();
  for (std::int64_t n : {2, 3, 4, 5}) {
    program fixed = m.import(with({"n=" + std::to_string(n)}));
    EXPECT_EQ(run(open, {counting({1, 1, n})}).to_doubles(), run(fixed, {counting({1, 1, n})}).to_doubles()) << n;
  }
}

// torch's repeat_interleave: the maximum of many equal lengths, and NonZero of a tensor of ones.
TEST(open_dims, tensors_of_one_value_are_known_whatever_their_size) {
  model_builder m;
  m.input("x", float_type, {"b", "s"}).output("y", int64_type);
  m.integers("first", {1}, {0});
  m.integers("second", {1}, {1});
  m.node("Shape", {"x"}, {"shape"});
  m.node("Gather", {"shape", "first"}, {"b"});
  m.node("Gather", {"shape", "second"}, {"s"});
  m.node("ConstantOfShape", {"b"}, {"zeros"});
  m.node("Cast", {"zeros"}, {"integers"}).add_attribute()->CopyFrom([] {
    ::onnx::AttributeProto a;
    a.set_name("to");
    a.set_type(::onnx::AttributeProto::INT);
    a.set_i(int64_type);
    return a;
  }());
  m.node("Add", {"integers", "s"}, {"lengths"});
  set_int(m.node("ReduceMax", {"lengths"}, {"most"}), "keepdims", 0);
  m.node("Unsqueeze", {"most", "first"}, {"size"});
  m.node("ConstantOfShape", {"size"}, {"row"});
  m.node("Cos", {"row"}, {"ones"});
  m.node("Expand", {"ones", "size"}, {"wide"});
  m.node("Shape", {"wide"}, {"y"});
  program p = m.import();
  EXPECT_EQ(run(p, {counting({2, 5})}).to_int64(), (std::vector<std::int64_t>{5}));
}

TEST(open_dims, pooling_with_ceil_mode_counts_the_windows_that_start_inside) {
  model_builder m;
  m.input("x", float_type, {"1", "1", "n"}).output("y");
  auto& pool = m.node("MaxPool", {"x"}, {"y"});
  graph_builder::attribute(pool, "kernel_shape", std::vector<std::int64_t>{2});
  graph_builder::attribute(pool, "strides", std::vector<std::int64_t>{3});
  graph_builder::attribute(pool, "pads", std::vector<std::int64_t>{0, 1});
  set_int(pool, "ceil_mode", 1);
  program open = m.import();
  for (std::int64_t n : {2, 3, 4, 5, 6, 7}) {
    EXPECT_EQ(run(open, {counting({1, 1, n})}).type().dims[2], dim((n + 2) / 3)) << n;
  }
}

// torch's EmbeddingBag numbers the bags of [B, k] indices with Range(0, B * k, k).
TEST(dims, a_range_whose_step_is_a_size) {
  model_builder m;
  m.input("x", float_type, {"B", "k"}).output("y", int64_type);
  m.integers("zero", {}, {0});
  m.integers("one", {}, {1});
  m.node("Shape", {"x"}, {"sizes"});
  m.node("Gather", {"sizes", "one"}, {"step"});
  m.node("Size", {"x"}, {"limit"});
  m.node("Range", {"zero", "limit", "step"}, {"y"});
  const program p = m.import();
  EXPECT_EQ(p.main().outputs()[0].type().str(), "i64[B]");
  const auto got = evaluate(p.bind({{"B", 3}, {"k", 2}}).main(),
                            std::vector{literal::of<float>({element_type::f32, {3, 2}}, {0, 0, 0, 0, 0, 0})});
  EXPECT_EQ(got[0].to_int64(), (std::vector<std::int64_t>{0, 2, 4}));
}

}  // namespace
