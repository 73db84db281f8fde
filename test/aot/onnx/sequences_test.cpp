// Sequences and optionals are eliminated at import. Loops that carry them, or values whose shapes change, are unrolled.
#include <gtest/gtest.h>

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

literal floats(std::vector<dim> dims, const std::vector<float>& values) {
  return literal::of<float>({element_type::f32, std::move(dims)}, values);
}

std::string message_of(const model_builder& m, const import_options& options = {}) {
  try {
    m.import(options);
  } catch (const error& e) {
    return e.what();
  }
  return "imported";
}

void expect_mentions(const std::string& message, std::string_view text) {
  EXPECT_NE(message.find(text), std::string::npos) << message;
}

TEST(sequences, split_and_concatenated_leave_no_trace) {
  model_builder m;
  m.input("x", float_type, {"5", "2"}).output("y").output("n");
  m.integers("two", {}, {2});
  m.node("SplitToSequence", {"x", "two"}, {"s"});
  m.node("SequenceLength", {"s"}, {"n"});
  m.node("ConcatFromSequence", {"s"}, {"y"});
  model_builder::attribute(*m.graph.mutable_node(2), "axis", 0);
  program p = m.import();
  literal x = floats({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  auto outputs = evaluate(p.main(), std::vector{x});
  EXPECT_EQ(outputs[0], x);
  EXPECT_EQ(outputs[1].to_int64(), std::vector<std::int64_t>{3});
}

TEST(sequences, a_position_that_depends_on_data_selects_among_equal_shapes) {
  model_builder m;
  m.input("x", float_type, {"2"}).input("z", float_type, {"2"}).input("i", int64_type, {}).output("y");
  m.node("SequenceConstruct", {"x", "z"}, {"s"});
  m.node("SequenceAt", {"s", "i"}, {"y"});
  program p = m.import();
  for (std::int64_t i : {0, 1, -1}) {
    std::vector<literal> inputs{floats({2}, {1, 2}), floats({2}, {3, 4}),
                                literal::of<std::int64_t>({element_type::i64, {}}, {i})};
    EXPECT_EQ(evaluate(p.main(), inputs)[0].to_doubles(),
              i == 0 ? (std::vector<double>{1, 2}) : (std::vector<double>{3, 4}));
  }
}

// A loop with three trips, each of which inserts iteration * x into a sequence.
model_builder collecting() {
  model_builder m;
  m.input("x", float_type, {"2"}).output("y");
  m.integers("trips", {}, {3});
  m.tensor("go", bool_type, {}).add_int32_data(1);
  m.node("SequenceEmpty", {}, {"none"});
  graph_builder body(test::graph_builder::body(m.node("Loop", {"trips", "go", "none"}, {"all"}), "body"));
  body.input("i", int64_type, {}).input("c", bool_type, {}).input("s", float_type, {});
  body.output("c").output("more");
  auto& cast = body.node("Cast", {"i"}, {"f"});
  graph_builder::attribute(cast, "to", float_type);
  body.node("Mul", {"x", "f"}, {"scaled"});
  body.node("SequenceInsert", {"s", "scaled"}, {"more"});
  graph_builder::attribute(m.node("ConcatFromSequence", {"all"}, {"y"}), "axis", 0);
  return m;
}

TEST(sequences, a_loop_that_carries_one_is_imported_trip_by_trip) {
  program p = collecting().import();
  EXPECT_EQ(p.modules().size(), 1u);
  EXPECT_EQ(evaluate(p.main(), std::vector{floats({2}, {1, 2})})[0].to_doubles(),
            (std::vector<double>{0, 0, 1, 2, 2, 4}));
}

// A loop over the first axis of x, whose length is open. Each trip appends twice the element to a sequence.
model_builder collecting_an_open_axis() {
  model_builder m;
  m.input("x", float_type, {"T", "2"}).output("y").output("last").output("count", int64_type);
  m.integers("zero", {}, {0});
  m.integers("end", {}, {-1});
  m.tensor("go", bool_type, {}).add_int32_data(1);
  m.node("Shape", {"x"}, {"sizes"});
  m.node("Gather", {"sizes", "zero"}, {"trips"});
  m.node("SequenceEmpty", {}, {"none"});
  graph_builder body(test::graph_builder::body(m.node("Loop", {"trips", "go", "none"}, {"all"}), "body"));
  body.input("i", int64_type, {}).input("c", bool_type, {}).input("s", float_type, {});
  body.output("c").output("more");
  body.node("Gather", {"x", "i"}, {"each"});
  body.node("Add", {"each", "each"}, {"twice"});
  body.node("SequenceInsert", {"s", "twice"}, {"more"});
  auto& joined = m.node("ConcatFromSequence", {"all"}, {"y"});
  graph_builder::attribute(joined, "axis", 1);
  graph_builder::attribute(joined, "new_axis", 1);
  m.node("SequenceAt", {"all", "end"}, {"last"});
  m.node("SequenceLength", {"all"}, {"count"});
  return m;
}

TEST(sequences, a_loop_of_any_length_collects_one_tensor) {
  const program p = collecting_an_open_axis().import();
  EXPECT_EQ(p.main().outputs()[0].type().str(), "f32[2, T]");
  const auto got = evaluate(p.bind({{"T", 3}}).main(), std::vector{floats({3, 2}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(got[0].to_doubles(), (std::vector<double>{2, 6, 10, 4, 8, 12}));
  EXPECT_EQ(got[1].to_doubles(), (std::vector<double>{10, 12}));
  EXPECT_EQ(got[2].at_int(0), 3);
}

TEST(sequences, a_loop_walks_the_parts_of_an_open_axis) {
  model_builder m;
  m.input("x", float_type, {"2", "T"}).output("y");
  m.tensor("go", bool_type, {}).add_int32_data(1);
  auto& parts = m.node("SplitToSequence", {"x"}, {"parts"});
  graph_builder::attribute(parts, "axis", 1);
  graph_builder::attribute(parts, "keepdims", 0);
  m.node("SequenceLength", {"parts"}, {"trips"});
  m.floats("start", {2}, {0, 0});
  graph_builder body(test::graph_builder::body(m.node("Loop", {"trips", "go", "start"}, {"y"}), "body"));
  body.input("i", int64_type, {}).input("c", bool_type, {}).input("v", float_type, {"2"});
  body.output("c").output("sum");
  body.node("SequenceAt", {"parts", "i"}, {"each"});
  body.node("Add", {"v", "each"}, {"sum"});
  const program p = m.import().bind({{"T", 3}});
  EXPECT_EQ(evaluate(p.main(), std::vector{floats({2, 3}, {1, 2, 3, 4, 5, 6})})[0].to_doubles(),
            (std::vector<double>{6, 15}));
}

TEST(sequences, parts_of_an_open_axis_may_keep_it) {
  model_builder m;
  m.input("x", float_type, {"2", "T"}).output("y").output("last").output("count");
  m.integers("one", {}, {1}), m.integers("end", {}, {-1});
  graph_builder::attribute(m.node("SplitToSequence", {"x", "one"}, {"parts"}), "axis", 1);
  graph_builder::attribute(m.node("ConcatFromSequence", {"parts"}, {"y"}), "axis", 1);
  m.node("SequenceAt", {"parts", "end"}, {"last"});
  m.node("SequenceLength", {"parts"}, {"count"});
  const program p = m.import();
  EXPECT_EQ(p.main().outputs()[1].type().str(), "f32[2, 1]");
  const literal x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto got = evaluate(p.bind({{"T", 3}}).main(), std::vector{x});
  EXPECT_EQ(got[0], x);
  EXPECT_EQ(got[1], floats({2, 1}, {3, 6}));
  EXPECT_EQ(got[2].at_int(0), 3);
}

TEST(sequences, an_open_axis_is_split_into_computed_lengths) {
  model_builder m;
  m.input("x", float_type, {"n"}).output("y");
  m.integers("two", {1}, {2}), m.integers("at", {}, {1});
  m.node("Shape", {"x"}, {"size"});
  m.node("Div", {"size", "two"}, {"first"});
  m.node("Sub", {"size", "first"}, {"second"});
  graph_builder::attribute(m.node("Concat", {"first", "second"}, {"lengths"}), "axis", 0);
  m.node("SplitToSequence", {"x", "lengths"}, {"halves"});
  m.node("SequenceAt", {"halves", "at"}, {"y"});
  const program p = m.import();
  EXPECT_EQ(evaluate(p.bind({{"n", 5}}).main(), std::vector{floats({5}, {1, 2, 3, 4, 5})})[0], floats({3}, {3, 4, 5}));
  EXPECT_EQ(evaluate(p.bind({{"n", 2}}).main(), std::vector{floats({2}, {1, 2})})[0], floats({1}, {2}));
}

TEST(sequences, given_lengths_fix_an_open_axis) {
  model_builder m;
  m.input("x", float_type, {"n"}).output("y");
  m.integers("lengths", {2}, {3, 2}), m.integers("at", {}, {1});
  m.node("SplitToSequence", {"x", "lengths"}, {"parts"});
  m.node("SequenceAt", {"parts", "at"}, {"y"});
  const program p = m.import();
  EXPECT_EQ(p.main().parameters()[0].type().str(), "f32[5]");
  EXPECT_EQ(evaluate(p.main(), std::vector{floats({5}, {1, 2, 3, 4, 5})})[0], floats({2}, {4, 5}));
}

TEST(sequences, a_carried_value_may_grow) {
  model_builder m;
  m.input("x", float_type, {"1"}).output("y");
  m.integers("trips", {}, {3});
  m.tensor("go", bool_type, {}).add_int32_data(1);
  graph_builder body(test::graph_builder::body(m.node("Loop", {"trips", "go", "x"}, {"y"}), "body"));
  body.input("i", int64_type, {}).input("c", bool_type, {}).input("v", float_type, {"n"});
  body.output("c").output("twice");
  graph_builder::attribute(body.node("Concat", {"v", "v"}, {"twice"}), "axis", 0);
  EXPECT_EQ(evaluate(m.import().main(), std::vector{floats({1}, {7})})[0].to_doubles(), std::vector<double>(8, 7));
}

TEST(sequences, operators_on_tensors_refuse_them) {
  model_builder m;
  m.input("x", float_type, {"2"}).output("y");
  m.node("SequenceConstruct", {"x"}, {"s"});
  m.node("Relu", {"s"}, {"y"});
  expect_mentions(message_of(m), "input 0 is a sequence");
}

TEST(sequences, optionals) {
  model_builder m;
  m.input("x", float_type, {"2"}).output("has").output("y").output("nothing");
  m.node("Optional", {"x"}, {"o"});
  m.node("OptionalHasElement", {"o"}, {"has"});
  m.node("OptionalGetElement", {"o"}, {"y"});
  m.node("OptionalHasElement", {}, {"nothing"});
  literal x = floats({2}, {1, 2});
  auto outputs = evaluate(m.import().main(), std::vector{x});
  EXPECT_EQ(outputs[0].at_int(0), 1);
  EXPECT_EQ(outputs[1], x);
  EXPECT_EQ(outputs[2].at_int(0), 0);
}

TEST(sequences, an_unknown_input_of_the_options_is_refused) {
  model_builder m;
  m.input("x", float_type, {"2"}).output("y");
  m.node("Relu", {"x"}, {"y"});
  import_options options;
  options.sequences["x"] = {{{2}}};
  expect_mentions(message_of(m, options), "--sequence 'x'");
}

}  // namespace
}  // namespace kiln
