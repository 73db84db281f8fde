// Sizes that data decide without a bound: the symbols that stand for them, and the stages that compute them.
#include <gtest/gtest.h>

#include "ir/invalid_shape.hpp"
#include "ir/ops/all.hpp"
#include "ir/size_resolver.hpp"
#include "test/aot/onnx/model_builder.hpp"

namespace kiln {
namespace {

using test::float_type;
using test::int64_type;
using test::model_builder;

// y counts from 0 to the sum of x.
model_builder counting() {
  model_builder m;
  m.input("x", float_type, {"n"}).output("y", int64_type);
  m.node("ReduceSum", {"x"}, {"sum"});
  test::graph_builder::attribute(m.node("Cast", {"sum"}, {"whole"}), "to", std::int64_t{int64_type});
  m.integers("axis", {1}, {0}), m.integers("zero", {}, {0}), m.integers("one", {}, {1});
  m.node("Squeeze", {"whole", "axis"}, {"end"});
  m.node("Range", {"zero", "end", "one"}, {"y"});
  return m;
}

literal floats(const std::vector<float>& values) {
  return literal::of<float>({element_type::f32, {static_cast<std::int64_t>(values.size())}}, values);
}

std::vector<literal> run_part(const program& part, const dim_bindings& sizes, std::span<const literal> inputs) {
  return evaluate(part.bind(sizes).main(), inputs);
}

dim_bindings sizes_for(const program& p, const literal& x) {
  size_resolver resolver(p, [](program part) -> size_resolver::part_runner {
    auto held = std::make_shared<program>(std::move(part));
    return
        [held](const dim_bindings& sizes, std::span<const literal> inputs) { return run_part(*held, sizes, inputs); };
  });
  dim_bindings sizes{{"n", x.type().element_count()}};
  resolver.add(sizes, {{"x", x}});
  return sizes;
}

TEST(data_sizes, an_output_says_which_number_is_which_size) {
  const program p = counting().import();
  EXPECT_EQ(data_decided_sizes(p), std::vector<std::string>{"value.end.0"});
  EXPECT_EQ(inputs_deciding_sizes(p), std::set<std::string>{"x"});
  EXPECT_EQ(p.main().outputs()[0].type().str(), "i64[value.end.0]");
  EXPECT_EQ(p.symbols.at("value.end.0").min, 0);
  const std::vector<size_stage> stages = size_stages(p);
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(stages[0].source.main().output_names(), stages[0].symbols);
  EXPECT_EQ(stages[0].source.symbols.size(), 1u);  // n
}

// The C interface reads only inputs that decide sizes on the host; others may be on a GPU.
TEST(data_sizes, other_inputs_are_not_needed_to_find_them) {
  model_builder m = counting();
  m.input("offset", int64_type, {"1"}).output("moved", int64_type);
  m.node("Add", {"y", "offset"}, {"moved"});
  const program p = m.import();
  EXPECT_EQ(inputs_deciding_sizes(p), std::set<std::string>{"x"});
  EXPECT_EQ(size_stages(p).at(0).source.main().parameters().size(), 1u);
  EXPECT_EQ(sizes_for(p, floats({1, 2, 1})).at("value.end.0"), 4);
}

TEST(data_sizes, wrong_options_are_told) {
  import_options options;
  options.dims.insert(parse_dim_spec("m=4"));
  try {
    counting().import(options);
    ADD_FAILURE() << "it was imported";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::usage);
    EXPECT_NE(std::string(e.what()).find("--dim 'm': the model has only 'n'"), std::string::npos) << e.what();
  }
}

TEST(data_sizes, the_inputs_of_a_run_decide) {
  const program p = counting().import();
  for (const literal& x : {floats({1, 2, 3}), floats({0}), floats({4, 0.5f})}) {
    const dim_bindings sizes = sizes_for(p, x);
    const std::int64_t size = sizes.at("value.end.0");
    EXPECT_EQ(size, x.type().element_count() == 3 ? 6 : x.at(0) == 0 ? 0 : 4);
    EXPECT_EQ(evaluate(p.bind(sizes).main(), std::span(&x, 1))[0].type().element_count(), size);
  }
}

TEST(data_sizes, a_program_that_is_bound_for_other_data_says_so) {
  const program p = counting().import();
  const literal x = floats({1, 2, 3}), other = floats({1, 2, 4});
  const program bound = p.bind(sizes_for(p, x));
  try {
    evaluate(bound.main(), std::span(&other, 1));
    ADD_FAILURE() << "it ran";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), invalid_shape);
    EXPECT_NE(std::string(e.what()).find("make a size 7, and the program was made for 6"), std::string::npos)
        << e.what();
  }
}

TEST(data_sizes, sizes_of_tensors_of_such_sizes_follow_in_another_stage) {
  model_builder m = counting();
  m.output("z", int64_type);
  m.node("ReduceSum", {"y"}, {"total"});
  m.node("Squeeze", {"total", "axis"}, {"last"});
  m.node("Range", {"zero", "last", "one"}, {"z"});
  const program p = m.import();
  ASSERT_EQ(size_stages(p).size(), 2u);
  const literal x = floats({2, 3});
  const dim_bindings sizes = sizes_for(p, x);
  EXPECT_EQ(sizes.at("value.end.0"), 5);
  EXPECT_EQ(sizes.at("value.last.0"), 10);
  EXPECT_EQ(evaluate(p.bind(sizes).main(), std::span(&x, 1))[1].type().element_count(), 10);
}

// The last of equal maxima: padding would come after it.
TEST(data_sizes, operators_that_cannot_have_padding_follow_counts) {
  model_builder m;
  m.input("x", float_type, {"n"}).output("s", int64_type);
  m.node("NonZero", {"x"}, {"y"});
  ::onnx::NodeProto& last = m.node("ArgMax", {"y"}, {"s"});
  test::graph_builder::attribute(last, "select_last_index", std::int64_t{1});
  test::graph_builder::attribute(last, "axis", std::int64_t{1});
  EXPECT_EQ(data_decided_sizes(m.import()), std::vector<std::string>{"value.y.0"});
}

TEST(data_sizes, lists_of_sizes_may_hold_numbers_of_both_kinds) {
  model_builder m;
  m.input("x", float_type, {"n"}).output("y");
  m.node("ReduceSum", {"x"}, {"sum"});
  test::graph_builder::attribute(m.node("Cast", {"sum"}, {"whole"}), "to", std::int64_t{int64_type});
  m.node("Shape", {"x"}, {"own"});
  m.integers("two", {1}, {2});
  test::graph_builder::attribute(m.node("Concat", {"two", "whole", "own"}, {"dims"}), "axis", std::int64_t{0});
  m.node("Expand", {"x", "dims"}, {"y"});
  const program p = m.import();
  EXPECT_EQ(p.main().outputs()[0].type().str(), "f32[2, value.dims.0, n]");
}

}  // namespace
}  // namespace kiln
