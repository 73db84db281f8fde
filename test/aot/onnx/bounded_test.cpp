// Results whose size depends on data: how a graph propagates their size, and which uses are refused.
#include <gtest/gtest.h>

#include <functional>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "spirv/library/reference.hpp"
#include "test/aot/onnx/model_builder.hpp"

namespace kiln {
namespace {

using test::bool_type;
using test::float_type;
using test::graph_builder;
using test::int64_type;
using test::model_builder;

literal floats(std::vector<dim> dims, const std::vector<float>& values) {
  return literal::of<float>({element_type::f32, std::move(dims)}, values);
}

std::vector<literal> run(const program& p, const std::vector<literal>& inputs) {
  return evaluate(p.main(), inputs, spirv::library_runner(p));
}

// Returns the indices of the nonzero elements of x [2, 3] as y.
model_builder places() {
  model_builder m;
  m.input("x", float_type, {"2", "3"});
  m.node("NonZero", {"x"}, {"y"});
  return m;
}

void expect_refused(model_builder& m, const std::string& text, error_kind kind = error_kind::unsupported) {
  try {
    m.import();
    ADD_FAILURE() << "imported, expected: " << text;
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(bounded_dims, outputs_have_the_largest_size_and_a_count) {
  model_builder m = places();
  m.output("y", int64_type);
  program p = m.import();
  ASSERT_EQ(p.main().output_names(), (std::vector<std::string>{"y", "y.count"}));
  EXPECT_TRUE(p.symbols.empty());
  EXPECT_EQ(p.main().outputs()[0].type().str(), "i64[2, 6]");
  const auto* op = p.main().outputs()[0].producer->op().get_if<bounded>();
  ASSERT_TRUE(op);
  EXPECT_EQ(op->axis, 1);
  EXPECT_EQ(p.main().outputs()[0].producer->inputs()[1], p.main().outputs()[1]);
  auto got = run(p, {floats({2, 3}, {0, 1, 0, 2, 0, 3})});
  EXPECT_EQ(got[0], literal::of<std::int64_t>({element_type::i64, {2, 3}}, {0, 1, 1, 1, 0, 2}));
  EXPECT_EQ(got[1], literal::from_int64({3}));
  EXPECT_EQ(run(p, {floats({2, 3}, {0, 0, 0, 0, 0, 0})})[0].type().str(), "i64[2, 0]");
}

TEST(bounded_dims, the_size_may_be_all_that_is_used) {
  model_builder m = places();
  m.output("made");
  m.node("Shape", {"y"}, {"size"});
  m.node("ConstantOfShape", {"size"}, {"made"});
  program p = m.import();
  EXPECT_EQ(p.main().output_names(), (std::vector<std::string>{"made", "made.count"}));
  EXPECT_EQ(run(p, {floats({2, 3}, {0, 1, 0, 2, 0, 3})})[0], floats({2, 3}, {0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run(p, {floats({2, 3}, {0, 0, 0, 0, 0, 0})})[0].type().str(), "f32[2, 0]");
}

// masked_scatter as torch exports it: the first elements of `features` replace those elements of x that a mask selects.
// The slice has min(count, size of `features`) elements.
TEST(bounded_dims, selected_elements_are_replaced_by_the_first_of_others) {
  model_builder m;
  m.input("x", float_type, {"2", "3"}).input("features", float_type, {"5"}).output("y");
  m.node("NonZero", {"x"}, {"columns"});
  graph_builder::attribute(m.node("Transpose", {"columns"}, {"at"}), "perm", std::vector<std::int64_t>{1, 0});
  m.integers("zero", {1}, {0}), m.integers("first", {}, {0});
  m.node("Shape", {"at"}, {"shape"});
  m.node("Gather", {"shape", "first"}, {"count"});
  m.node("Unsqueeze", {"count", "zero"}, {"end"});
  m.node("Slice", {"features", "zero", "end", "zero"}, {"updates"});
  m.node("ScatterND", {"x", "at", "updates"}, {"y"});
  program p = m.import();
  literal features = floats({5}, {10, 11, 12, 13, 14});
  EXPECT_EQ(run(p, {floats({2, 3}, {0, 1, 0, 2, 0, 3}), features})[0], floats({2, 3}, {0, 10, 0, 11, 0, 12}));
  EXPECT_EQ(run(p, {floats({2, 3}, {1, 1, 1, 0, 1, 1}), features})[0], floats({2, 3}, {10, 11, 12, 0, 13, 14}));
}

// x[mask] = value as torch's exporter writes it: the number of updates is the sum of the mask's elements.
TEST(bounded_dims, the_sum_of_a_mask_is_the_number_of_its_places) {
  model_builder m;
  m.input("x", float_type, {"2", "3"}).input("value", float_type, {"1"}).output("y");
  graph_builder::attribute(m.node("Cast", {"x"}, {"mask"}), "to", 9);
  m.node("NonZero", {"mask"}, {"columns"});
  graph_builder::attribute(m.node("Transpose", {"columns"}, {"at"}), "perm", std::vector<std::int64_t>{1, 0});
  m.integers("flat", {1}, {-1});
  m.node("Reshape", {"mask", "flat"}, {"elements"});
  graph_builder::attribute(m.node("Cast", {"elements"}, {"ones"}), "to", 7);
  m.node("ReduceSum", {"ones"}, {"count"});
  m.node("Expand", {"value", "count"}, {"updates"});
  m.node("ScatterND", {"x", "at", "updates"}, {"y"});
  program p = m.import();
  EXPECT_EQ(run(p, {floats({2, 3}, {0, 1, -1, 2, 0, 3}), floats({1}, {9})})[0], floats({2, 3}, {0, 9, 9, 9, 0, 9}));
  EXPECT_EQ(run(p, {floats({2, 3}, {0, 0, 0, 0, 0, 0}), floats({1}, {9})})[0], floats({2, 3}, {0, 0, 0, 0, 0, 0}));
}

TEST(bounded_dims, what_is_not_used_is_not_computed) {
  model_builder m = places();
  m.output("z");
  m.node("Relu", {"x"}, {"z"});
  program p = m.import();
  EXPECT_EQ(p.main().output_names(), std::vector<std::string>{"z"});
  for (const instruction& i : p.main().instructions()) EXPECT_FALSE(i.op().is<code_object>());
}

TEST(bounded_dims, sizes_follow_through_the_graph) {
  model_builder m = places();
  m.output("values").output("size", int64_type).output("some", bool_type).output("rows", int64_type);
  m.integers("zero", {1}, {0}), m.integers("minus_one", {1}, {-1}), m.integers("one", {1}, {1});
  graph_builder::attribute(m.node("Transpose", {"y"}, {"t"}), "perm", std::vector<std::int64_t>{1, 0});
  m.node("GatherND", {"x", "t"}, {"values"});
  m.node("Shape", {"values"}, {"size"});
  // A count may be zero, so the result is not known at import.
  m.node("Greater", {"size", "zero"}, {"some"});
  m.node("Concat", {"size", "one"}, {"target"}).set_name("target");
  graph_builder::attribute(*m.graph.mutable_node(static_cast<int>(m.graph.node_size()) - 1), "axis", 0);
  m.node("Gather", {"t", "zero"}, {"first"});
  graph_builder::attribute(*m.graph.mutable_node(static_cast<int>(m.graph.node_size()) - 1), "axis", 1);
  m.node("Reshape", {"first", "target"}, {"rows"});
  program p = m.import();
  EXPECT_EQ(p.main().output_names(), (std::vector<std::string>{"values", "size", "some", "rows", "values.count"}));
  auto got = run(p, {floats({2, 3}, {0, 1.5f, 0, 2.5f, 0, 3.5f})});
  EXPECT_EQ(got[0], floats({3}, {1.5f, 2.5f, 3.5f}));
  EXPECT_EQ(got[1], literal::from_int64({3}));
  EXPECT_EQ(got[2].at_int(0), 1);
  EXPECT_EQ(got[3], literal::of<std::int64_t>({element_type::i64, {3, 1}}, {0, 1, 1}));
  got = run(p, {floats({2, 3}, {0, 0, 0, 0, 0, 0})});
  EXPECT_EQ(got[0].type().str(), "f32[0]");
  EXPECT_EQ(got[2].at_int(0), 0);
}

TEST(bounded_dims, known_data_gives_known_sizes) {
  model_builder m;
  m.input("z", float_type, {"3"}).output("y", int64_type).output("kept");
  m.floats("x", {3}, {0, 5, 7});
  m.tensor("q", bool_type, {3}).add_int32_data(1);
  for (int bit : {0, 1}) m.graph.mutable_initializer(1)->add_int32_data(bit);
  m.node("NonZero", {"x"}, {"y"});
  m.node("Compress", {"z", "q"}, {"kept"});
  program p = m.import();
  EXPECT_EQ(p.main().output_names().size(), 2u);
  auto got = run(p, {floats({3}, {1, 2, 3})});
  EXPECT_EQ(got[0], literal::of<std::int64_t>({element_type::i64, {1, 2}}, {1, 2}));
  EXPECT_EQ(got[1], floats({2}, {1, 3}));
}

TEST(bounded_dims, padding_is_masked_where_places_are_combined) {
  const std::vector<float> x{0, 1.5f, 0, -2.5f, 0, 4};
  struct {
    const char* operation;
    float wanted;
  } cases[] = {{"ReduceSum", 3}, {"ReduceMean", 1}, {"ReduceMax", 4}, {"ReduceMin", -2.5f}, {"ReduceProd", -15}};
  for (const auto& c : cases) {
    model_builder m = places();
    m.output("s").output("best", int64_type).output("running").output("weights");
    m.node("Transpose", {"y"}, {"t"});
    m.node("GatherND", {"x", "t"}, {"v"});
    m.integers("zero", {}, {0});
    graph_builder::attribute(m.node(c.operation, {"v"}, {"s"}), "keepdims", 0);
    graph_builder::attribute(m.node("ArgMax", {"v"}, {"best"}), "axis", 0);
    graph_builder::attribute(m.node("CumSum", {"v", "zero"}, {"running"}), "reverse", 1);
    graph_builder::attribute(m.node("Softmax", {"v"}, {"weights"}), "axis", 0);
    auto got = run(m.import(), {floats({2, 3}, x)});
    EXPECT_EQ(got[0], floats({}, {c.wanted})) << c.operation;
    EXPECT_EQ(got[1], literal::from_int64({2}));
    EXPECT_EQ(got[2], floats({3}, {3, 1.5f, 4}));
    ASSERT_EQ(got[3].type().str(), "f32[3]");
    EXPECT_NEAR(got[3].at(2), 0.92276, 1e-4);
  }
}

TEST(bounded_dims, the_smallest_place_is_one_of_those_that_there_are) {
  model_builder m = places();
  m.output("s", int64_type);
  m.node("ReduceMin", {"y"}, {"s"});
  EXPECT_EQ(run(m.import(), {floats({2, 3}, {0, 0, 0, 0, 0, 2})})[0].at_int(0), 1);
}

TEST(bounded_dims, minus_one_is_the_last_place_that_there_is) {
  model_builder m = places();
  m.output("s", int64_type);
  m.integers("minus_one", {1}, {-1});
  graph_builder::attribute(m.node("Gather", {"y", "minus_one"}, {"s"}), "axis", 1);
  EXPECT_EQ(run(m.import(), {floats({2, 3}, {0, 1, 0, 2, 0, 0})})[0],
            literal::of<std::int64_t>({element_type::i64, {2, 1}}, {1, 0}));
}

TEST(bounded_dims, padding_writes_nothing) {
  model_builder m = places();
  m.output("s").output("e");
  m.floats("u", {1}, {9});
  m.node("Transpose", {"y"}, {"t"});
  m.node("Shape", {"t"}, {"n"});
  graph_builder::attribute(*m.graph.mutable_node(2), "end", 1);
  m.node("Expand", {"u", "n"}, {"updates"});
  m.node("ScatterND", {"x", "t", "updates"}, {"s"});
  m.integers("one", {1}, {1}), m.integers("flat", {1}, {-1});
  graph_builder::attribute(m.node("Gather", {"t", "one"}, {"columns"}), "axis", 1);
  m.node("Reshape", {"columns", "flat"}, {"column"});
  m.floats("line", {3}, {0, 0, 0});
  m.node("ScatterElements", {"line", "column", "updates"}, {"e"});
  auto got = run(m.import(), {floats({2, 3}, {0, 1, 0, 0, 0, 3})});
  EXPECT_EQ(got[0], floats({2, 3}, {0, 9, 0, 0, 0, 9}));
  EXPECT_EQ(got[1], floats({3}, {0, 9, 9}));
}

TEST(bounded_dims, joined_parts_have_no_gaps) {
  model_builder m = places();
  m.output("s", int64_type);
  m.integers("end", {2, 1}, {7, 8});
  graph_builder::attribute(m.node("Concat", {"y", "y", "end"}, {"s"}), "axis", 1);
  EXPECT_EQ(run(m.import(), {floats({2, 3}, {0, 1, 0, 0, 0, 2})})[0],
            literal::of<std::int64_t>({element_type::i64, {2, 5}}, {0, 1, 0, 1, 7, 1, 2, 1, 2, 8}));
}

TEST(bounded_dims, reshapes_move_no_padding_between_elements) {
  model_builder m = places();
  m.output("flat", int64_type).output("back", int64_type);
  m.integers("minus_one", {1}, {-1}), m.integers("pairs", {2}, {-1, 2});
  m.node("Reshape", {"y", "minus_one"}, {"flat"});
  m.node("Reshape", {"y", "pairs"}, {"back"});
  program p = m.import();
  auto got = run(p, {floats({2, 3}, {0, 1, 0, 2, 0, 3})});
  EXPECT_EQ(got[0], literal::from_int64({0, 1, 1, 1, 0, 2}));
  EXPECT_EQ(got[1].to_int64(), (std::vector<std::int64_t>{0, 1, 1, 1, 0, 2}));
  EXPECT_EQ(run(p, {floats({2, 3}, {0, 0, 0, 0, 0, 0})})[0].type().str(), "i64[0]");
}

TEST(bounded_dims, slices_may_begin_anywhere) {
  model_builder m = places();
  m.output("rest", int64_type).output("end", int64_type);
  m.integers("one", {1}, {1}), m.integers("far", {1}, {INT64_MAX}), m.integers("minus_two", {1}, {-2});
  m.node("Slice", {"y", "one", "far", "one"}, {"rest"});
  m.node("Slice", {"y", "minus_two", "far", "one"}, {"end"});
  program p = m.import();
  auto got = run(p, {floats({2, 3}, {0, 1, 0, 2, 0, 3})});
  EXPECT_EQ(got[0], literal::of<std::int64_t>({element_type::i64, {2, 2}}, {1, 1, 0, 2}));
  EXPECT_EQ(got[1], got[0]);
  got = run(p, {floats({2, 3}, {0, 0, 0, 2, 0, 0})});
  EXPECT_EQ(got[0].type().str(), "i64[2, 0]");
  EXPECT_EQ(got[1], literal::of<std::int64_t>({element_type::i64, {2, 1}}, {1, 0}));
}

// jax writes x[:, i] as the elements from (0, i) on whose number is known along each axis.
TEST(bounded_dims, a_slice_from_data_whose_sizes_are_known) {
  model_builder m(18);
  m.input("x", float_type, {"3", "4"}).input("i", float_type, {"1"}).output("y");
  m.integers("row", {1}, {0}), m.integers("sizes", {2}, {3, 1}), m.integers("axes", {2}, {0, 1}),
      m.integers("one", {1}, {1});
  graph_builder::attribute(m.node("Cast", {"i"}, {"column"}), "to", std::int64_t{int64_type});
  graph_builder::attribute(m.node("Concat", {"row", "column"}, {"starts"}), "axis", std::int64_t{0});
  m.node("Add", {"starts", "sizes"}, {"ends"});
  m.node("Slice", {"x", "starts", "ends", "axes"}, {"part"});
  m.node("Squeeze", {"part", "one"}, {"y"});
  const program p = m.import();
  const literal x = floats({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  for (float i : {0, 2, 3})
    EXPECT_EQ(run(p, {x, floats({1}, {i})})[0].to_doubles(), (std::vector<double>{i, i + 4.0, i + 8.0})) << i;
}

TEST(bounded_dims, the_largest_of_what_there_is) {
  model_builder m = places();
  m.output("best").output("order", int64_type);
  m.integers("two", {1}, {2});
  m.node("Transpose", {"y"}, {"t"});
  m.node("GatherND", {"x", "t"}, {"v"});
  m.node("Shape", {"v"}, {"n"});
  m.node("Min", {"n", "two"}, {"k"});
  m.node("TopK", {"v", "k"}, {"best", "order"});
  program p = m.import();
  auto got = run(p, {floats({2, 3}, {0, -1, 0, -2, 0, -3})});
  EXPECT_EQ(got[0], floats({2}, {-1, -2}));
  EXPECT_EQ(got[1], literal::from_int64({0, 1}));
  got = run(p, {floats({2, 3}, {0, 0, 0, 0, -5, 0})});
  EXPECT_EQ(got[0], floats({1}, {-5}));
  EXPECT_EQ(run(p, {floats({2, 3}, {0, 0, 0, 0, 0, 0})})[0].type().str(), "f32[0]");
}

TEST(bounded_dims, branches_of_different_sizes_are_merged) {
  model_builder m;
  m.input("x", float_type, {"3"}).input("c", bool_type, {}).output("y", int64_type);
  auto& branch = m.node("If", {"c"}, {"y"});
  graph_builder yes(m.body(branch, "then_branch")), no(m.body(branch, "else_branch"));
  yes.output("t", int64_type);
  yes.node("NonZero", {"x"}, {"t"});
  no.output("e", int64_type);
  no.integers("e", {1, 2}, {5, 6});
  program p = m.import();
  auto bit = [](bool b) { return literal::scalar(element_type::boolean, b); };
  EXPECT_EQ(run(p, {floats({3}, {1, 0, 1}), bit(true)})[0].to_int64(), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(run(p, {floats({3}, {0, 0, 1}), bit(true)})[0].to_int64(), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(run(p, {floats({3}, {1, 1, 1}), bit(false)})[0].to_int64(), (std::vector<std::int64_t>{5, 6}));
}

TEST(bounded_dims, open_dimensions_bound_the_size) {
  model_builder m;
  m.input("x", float_type, {"batch", "3"}).output("y", int64_type).output("kept");
  m.node("NonZero", {"x"}, {"y"});
  m.node("Transpose", {"y"}, {"t"});
  m.node("GatherND", {"x", "t"}, {"kept"});
  program p = m.import();
  EXPECT_EQ(p.main().outputs()[0].type().str(), "i64[2, 3*batch]");
  auto got = run(p.bind({{"batch", 2}}), {floats({2, 3}, {0, 1, 0, 2, 0, 3})});
  EXPECT_EQ(got[0], literal::of<std::int64_t>({element_type::i64, {2, 3}}, {0, 1, 1, 1, 0, 2}));
  EXPECT_EQ(got[1], floats({3}, {1, 2, 3}));
}

TEST(bounded_dims, uses_that_mix_places_are_refused_by_name) {
  model_builder inside;
  inside.input("x", float_type, {"3"}).input("n", int64_type, {}).input("c", bool_type, {}).output("y", int64_type);
  inside.integers("start", {1, 3}, {0, 0, 0});
  graph_builder body(inside.body(inside.node("Loop", {"n", "c", "start"}, {"y"}), "body"));
  body.input("trip", int64_type, {}).input("go", bool_type, {}).input("carried", int64_type, {"1", "3"});
  body.output("go", bool_type).output("t", int64_type);
  body.node("NonZero", {"x"}, {"t"});
  expect_refused(inside, "changes its shape from i64[1, 3] to i64[1, counted.");

  model_builder taken;
  taken.input("x", float_type, {"counted.0", "3"}).output("x");
  expect_refused(taken, "names that begin with counted. are reserved");
}

// Sums of x[starts[i]:ends[i]], as an EmbeddingBag with offsets computes them.
TEST(bounded_dims, a_slice_between_computed_places_in_a_loop) {
  model_builder m;
  m.input("x", float_type, {"N"}).input("starts", int64_type, {"B"}).input("ends", int64_type, {"B"}).output("y");
  m.tensor("go", bool_type, {}).add_int32_data(1);
  m.node("Size", {"starts"}, {"trips"});
  m.integers("zero", {1}, {0});
  graph_builder body(m.body(m.node("Loop", {"trips", "go"}, {"y"}), "body"));
  body.input("i", int64_type, {}).input("c", bool_type, {});
  body.output("c", bool_type).output("sum");
  body.node("Gather", {"starts", "i"}, {"s"});
  body.node("Gather", {"ends", "i"}, {"e"});
  body.node("Unsqueeze", {"s", "zero"}, {"first"});
  body.node("Unsqueeze", {"e", "zero"}, {"last"});
  body.node("Slice", {"x", "first", "last", "zero"}, {"part"});
  graph_builder::attribute(body.node("ReduceSum", {"part"}, {"sum"}), "keepdims", 0);
  program p = m.import().bind({{"N", 5}, {"B", 3}});
  auto integers = [](const std::vector<std::int64_t>& v) {
    return literal::of<std::int64_t>({element_type::i64, {3}}, v);
  };
  // [1, 3), an empty range, and a range that ends past the last element.
  const auto got =
      evaluate(p.main(), std::vector{floats({5}, {1, 2, 4, 8, 16}), integers({1, 2, -2}), integers({3, 2, 9})});
  EXPECT_EQ(got[0].to_doubles(), (std::vector<double>{6, 0, 24}));
}

// y = the sum, the maximum or the first row of x[start:end], as EmbeddingBag is exported: Ifs in an If in a Loop.
// skl2onnx's KNNImputer: one branch gives the row with an axis of 1 before it.
TEST(bounded_dims, merged_branches_may_differ_by_an_axis_of_one) {
  model_builder m;
  m.input("x", float_type, {"3"}).input("c", bool_type, {}).output("y", int64_type);
  m.integers("row", {1}, {-1});
  auto& branch = m.node("If", {"c"}, {"y"});
  graph_builder yes(m.body(branch, "then_branch")), no(m.body(branch, "else_branch"));
  yes.output("t", int64_type);
  yes.node("NonZero", {"x"}, {"t"});
  no.output("e", int64_type);
  no.node("NonZero", {"x"}, {"places"});
  no.node("Reshape", {"places", "row"}, {"e"});
  program p = m.import();
  for (bool taken : {true, false}) {
    auto y = run(p, {floats({3}, {1, 0, 1}), literal::scalar(element_type::boolean, taken)})[0];
    EXPECT_EQ(y.type().dims, (std::vector<dim>{2}));
    EXPECT_EQ(y.to_int64(), (std::vector<std::int64_t>{0, 2}));
  }
}

TEST(bounded_dims, nested_branches_read_and_give_slices_between_computed_places) {
  model_builder m;
  m.input("x", float_type, {"5", "2"}).input("at", float_type, {"2"}).input("how", float_type, {"2"}).output("y");
  m.integers("trips", {}, {1}), m.integers("zero", {1}, {0}), m.integers("one", {1}, {1});
  m.floats("half", {}, {0.5f}), m.floats("state", {2}, {0, 0});
  m.node("Identity", {"at"}, {"at_f"});
  graph_builder::attribute(m.node("Cast", {"at_f"}, {"places"}), "to", std::int64_t{int64_type});
  m.node("Greater", {"how", "half"}, {"flags"});
  m.integers("two", {1}, {2});
  m.node("Slice", {"places", "zero", "one"}, {"start"});
  m.node("Slice", {"places", "one", "two"}, {"end"});
  m.node("Slice", {"flags", "zero", "one"}, {"outer_flag"});
  m.node("Slice", {"flags", "one", "two"}, {"inner_flag"});
  auto& loop = m.node("Loop", {"trips", "", "state"}, {"last", "ys"});
  graph_builder body(graph_builder::body(loop, "body"));
  body.input("i", int64_type, {}).input("go", bool_type, {}).input("s", float_type, {"2"});
  body.output("go_on", bool_type).output("s_out").output("row");
  body.node("Identity", {"go"}, {"go_on"});
  using filler = std::function<void(graph_builder&)>;
  auto branch = [](graph_builder& graph, const char* flag, const char* to, const filler& yes, const filler& no) {
    auto& made = graph.node("If", {flag}, {to});
    graph_builder first(graph_builder::body(made, "then_branch")), second(graph_builder::body(made, "else_branch"));
    yes(first), no(second);
  };
  branch(
      body, "outer_flag", "rows",
      [](graph_builder& g) { g.output("x0"), g.node("Slice", {"x", "zero", "one"}, {"x0"}); },
      [&](graph_builder& g) {
        g.output("some");
        g.node("Slice", {"x", "start", "end"}, {"part"});
        branch(
            g, "inner_flag", "some", [](graph_builder& h) { h.output("same"), h.node("Identity", {"part"}, {"same"}); },
            [](graph_builder& h) { h.output("twice"), h.node("Add", {"part", "part"}, {"twice"}); });
      });
  graph_builder::attribute(body.node("ReduceSum", {"rows", "zero"}, {"row"}), "keepdims", std::int64_t{0});
  body.node("Add", {"s", "row"}, {"s_out"});
  m.node("Squeeze", {"ys", "zero"}, {"y"});
  const program p = m.import();
  const literal x = floats({5, 2}, {1, 10, 2, 20, 3, 30, 4, 40, 5, 50});
  auto y = [&](std::vector<float> at, std::vector<float> how) {
    return run(p, {x, floats({2}, at), floats({2}, how)})[0].to_doubles();
  };
  EXPECT_EQ(y({1, 4}, {1, 0}), (std::vector<double>{1, 10}));
  EXPECT_EQ(y({1, 4}, {0, 1}), (std::vector<double>{9, 90}));
  EXPECT_EQ(y({1, 3}, {0, 0}), (std::vector<double>{10, 100}));
  EXPECT_EQ(y({2, 2}, {0, 0}), (std::vector<double>{0, 0}));
}

TEST(bounded_dims, a_slice_of_known_length_at_a_computed_place) {
  model_builder m;
  m.input("x", float_type, {"N"}).input("at", float_type, {"1"}).output("y");
  m.integers("one", {}, {1});
  graph_builder::attribute(m.node("Cast", {"at"}, {"first"}), "to", int64_type);
  m.node("Add", {"first", "one"}, {"last"});
  m.node("Slice", {"x", "first", "last"}, {"y"});
  const program p = m.import();
  EXPECT_EQ(p.main().outputs().size(), 1u);
  const auto got = evaluate(p.bind({{"N", 5}}).main(), std::vector{floats({5}, {1, 2, 4, 8, 16}), floats({1}, {2})});
  EXPECT_EQ(got[0].to_doubles(), (std::vector<double>{4}));
}

}  // namespace
}  // namespace kiln
