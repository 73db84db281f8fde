// If and Loop: branches decided at import, captures of outer names, loops that carry and collect values.
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
literal boolean(bool x) { return literal::scalar(element_type::boolean, x); }

// Returns c ? x + w : x * z, where w is a constant and x and z are captured.
model_builder branching(bool constant_condition) {
  model_builder m;
  m.input("x", float_type, {"3"}).input("z", float_type, {"3"}).output("y");
  if (constant_condition) m.tensor("c", bool_type, {}).add_int32_data(1);
  else m.input("c", bool_type, {});
  m.floats("w", {3}, {10, 20, 30});
  auto& branch = m.node("If", {"c"}, {"y"});
  graph_builder yes(m.body(branch, "then_branch")), no(m.body(branch, "else_branch"));
  yes.output("t");
  yes.node("Add", {"x", "w"}, {"t"});
  no.output("e");
  no.node("Mul", {"x", "z"}, {"e"});
  return m;
}

TEST(control, both_branches_of_an_if) {
  program p = branching(false).import();
  ASSERT_EQ(p.modules().size(), 3u);
  for (const auto& i : p.main().instructions())
    if (i.op().is<if_else>()) {
      EXPECT_EQ(i.inputs().size(), 3u);  // condition, x, z: the constant is not an argument
    }
  for (bool c : {true, false}) {
    std::vector<literal> inputs{floats({3}, {1, 2, 3}), floats({3}, {5, 6, 7}), boolean(c)};
    auto y = evaluate(p.main(), inputs)[0].to_doubles();
    EXPECT_EQ(y, c ? (std::vector<double>{11, 22, 33}) : (std::vector<double>{5, 12, 21}));
  }
}

TEST(control, a_constant_condition_leaves_one_branch) {
  program p = branching(true).import();
  EXPECT_EQ(p.modules().size(), 1u);
  std::vector<literal> inputs{floats({3}, {1, 2, 3}), floats({3}, {5, 6, 7})};
  EXPECT_EQ(evaluate(p.main(), inputs)[0].to_doubles(), (std::vector<double>{11, 22, 33}));
}

TEST(control, branches_of_different_shapes_are_refused) {
  model_builder m;
  m.input("x", float_type, {"4"}).input("c", bool_type, {}).output("y");
  m.integers("two", {2}, {2, 2});
  auto& branch = m.node("If", {"c"}, {"y"});
  graph_builder yes(m.body(branch, "then_branch")), no(m.body(branch, "else_branch"));
  yes.output("t");
  yes.node("Relu", {"x"}, {"t"});
  no.output("e");
  no.node("Reshape", {"x", "two"}, {"e"});
  try {
    m.import();
    FAIL() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    EXPECT_NE(std::string(e.what()).find("node 'If_node'"), std::string::npos) << e.what();
  }
}

// s = s * 2 + b for n trips, collecting s. b is captured, and an inner If captures through two levels.
TEST(control, a_loop_carries_collects_and_captures) {
  model_builder m;
  m.input("s0", float_type, {"2"}).input("b", float_type, {"2"}).input("flag", bool_type, {}).output("s").output("all");
  m.integers("n", {}, {4});
  m.tensor("go", bool_type, {}).add_int32_data(1);
  m.floats("two", {}, {2});
  auto& loop_node = m.node("Loop", {"n", "go", "s0"}, {"s", "all"});
  graph_builder body(m.body(loop_node, "body"));
  body.input("i", int64_type, {})
      .input("cond", bool_type, {})
      .input("s_in", float_type, {"2"})
      .output("cond_out", bool_type)
      .output("s_out")
      .output("scan");
  body.node("Identity", {"cond"}, {"cond_out"});
  body.node("Mul", {"s_in", "two"}, {"doubled"});
  auto& inner = body.node("If", {"flag"}, {"s_out"});
  graph_builder yes(graph_builder::body(inner, "then_branch")), no(graph_builder::body(inner, "else_branch"));
  yes.output("t");
  yes.node("Add", {"doubled", "b"}, {"t"});
  no.output("e");
  no.node("Sub", {"doubled", "b"}, {"e"});
  body.node("Identity", {"s_out"}, {"scan"});
  program p = m.import();
  EXPECT_EQ(p.modules().size(), 4u);
  for (bool flag : {true, false}) {
    std::vector<literal> inputs{floats({2}, {1, 0}), floats({2}, {1, 3}), boolean(flag)};
    auto outputs = evaluate(p.main(), inputs);
    std::vector<double> state{1, 0}, collected;
    for (int i = 0; i < 4; ++i)
      for (std::size_t k = 0; k < 2; ++k) {
        state[k] = 2 * state[k] + (flag ? 1 : -1) * (k ? 3 : 1);
        collected.push_back(state[k]);
      }
    EXPECT_EQ(outputs[0].to_doubles(), state);
    EXPECT_EQ(outputs[1].type(), (shape{element_type::f32, {4, 2}}));
    EXPECT_EQ(outputs[1].to_doubles(), collected);
  }
}

TEST(control, a_loop_that_stops_itself) {
  model_builder m;
  m.input("s0", float_type, {}).output("s");
  m.floats("one", {}, {1});
  m.floats("limit", {}, {5});
  auto& loop_node = m.node("Loop", {"", "", "s0"}, {"s"});
  graph_builder body(m.body(loop_node, "body"));
  body.input("i", int64_type, {})
      .input("cond", bool_type, {})
      .input("s_in", float_type, {})
      .output("cond_out", bool_type)
      .output("s_out");
  body.node("Add", {"s_in", "one"}, {"s_out"});
  body.node("Less", {"s_out", "limit"}, {"cond_out"});
  program p = m.import();
  std::vector<literal> inputs{floats({}, {0.5f})};
  EXPECT_EQ(evaluate(p.main(), inputs)[0].at(0), 5.5);
}

// A loop that appends the double of the last element in each trip while that is below `limit`, and collects the
// appended elements.
model_builder appending(bool stops) {
  model_builder m;
  m.input("s0", float_type, {"S"}).input("n", int64_type, {}).output("s").output("all");
  m.floats("two", {}, {2});
  m.floats("limit", {1}, {20});
  m.integers("last", {1}, {-1});
  m.tensor("go", bool_type, {}).add_int32_data(1);
  graph_builder body(m.body(m.node("Loop", {"n", "go", "s0"}, {"s", "all"}), "body"));
  body.input("i", int64_type, {}).input("cond", bool_type, {}).input("s_in", float_type, {""});
  body.output("cond_out", bool_type).output("s_out").output("scan");
  body.node("Gather", {"s_in", "last"}, {"end"});
  body.node("Mul", {"end", "two"}, {"next"});
  graph_builder::attribute(body.node("Concat", {"s_in", "next"}, {"s_out"}), "axis", 0);
  body.node("Identity", {"next"}, {"scan"});
  if (stops) body.node("Less", {"next", "limit"}, {"cond_out"});
  else body.node("Identity", {"cond"}, {"cond_out"});
  return m;
}

TEST(control, values_that_grow_lie_in_a_buffer_for_all_trips) {
  program p = appending(false).import().bind({{"S", 2}, {"value.n.0", 3}});
  EXPECT_EQ(p.main().outputs()[0].type().str(), "f32[5]");
  const auto got = evaluate(p.main(), std::vector{floats({2}, {1, 3}), literal::scalar(element_type::i64, 3)});
  EXPECT_EQ(got[0], floats({5}, {1, 3, 6, 12, 24}));
  EXPECT_EQ(got[1], floats({3, 1}, {6, 12, 24}));
}

TEST(control, values_that_grow_end_with_the_last_trip) {
  program p = appending(true).import().bind({{"S", 2}, {"value.n.0", 7}});
  EXPECT_EQ(p.main().output_names(), (std::vector<std::string>{"s", "all", "s.count", "all.count"}));
  const auto got = evaluate(p.main(), std::vector{floats({2}, {1, 3}), literal::scalar(element_type::i64, 7)});
  EXPECT_EQ(got[0], floats({5}, {1, 3, 6, 12, 24}));
  EXPECT_EQ(got[1], floats({3, 1}, {6, 12, 24}));
  EXPECT_EQ(got[2], literal::from_int64({5}));
}

// `while i < T`: the index is a carried value, as onnxscript writes it. The body collects x[i] * x[i].
TEST(control, a_loop_that_counts_to_a_size_collects_values) {
  model_builder m;
  m.input("x", float_type, {"T"}).output("y");
  m.integers("zero", {}, {0});
  m.integers("one", {}, {1});
  m.node("Size", {"x"}, {"limit"});
  m.node("Less", {"zero", "limit"}, {"go"});
  graph_builder body(m.body(m.node("Loop", {"", "go", "zero"}, {"index", "y"}), "body"));
  body.input("trip", int64_type, {}).input("c", bool_type, {}).input("i", int64_type, {});
  body.output("goes_on", bool_type).output("next", int64_type).output("square");
  body.node("Gather", {"x", "i"}, {"each"});
  body.node("Mul", {"each", "each"}, {"square"});
  body.node("CastLike", {"one", "i"}, {"step"});
  body.node("Add", {"i", "step"}, {"next"});
  body.node("Less", {"next", "limit"}, {"goes_on"});
  const program p = m.import();
  EXPECT_EQ(p.main().outputs()[0].type().str(), "f32[T]");
  EXPECT_EQ(evaluate(p.bind({{"T", 3}}).main(), std::vector{floats({3}, {1, 2, 3})})[0].to_doubles(),
            (std::vector<double>{1, 4, 9}));
}

// How a loop whose trips are counted by its condition may be written: start and step of the index, and the nodes that
// compute "goes_on" from "next" and the carried "bound", which stays as it is.
struct counted {
  std::int64_t start, step;
  std::string compare;
  bool bound_first = false;
  bool huge_trip_count = false;  // as torch.jit.script writes
  bool counts_trips = false;     // whether the number of the trip is compared, too, as Keras 3 does
};

// The indices of all trips, collected, with the size of x as the bound.
std::vector<double> count_to_size(const counted& form, std::int64_t size) {
  model_builder m;
  m.input("x", float_type, {"T"}).output("all");
  m.integers("start", {}, {form.start});
  m.floats("none", {}, {0});
  if (form.huge_trip_count) m.integers("huge", {}, {INT64_MAX});
  m.node("Size", {"x"}, {"bound"});
  const auto compare = [&](graph_builder& g, const std::string& index, const std::string& bound,
                           const std::string& result) {
    g.node(form.compare, form.bound_first ? std::vector<std::string>{bound, index} : std::vector{index, bound},
           {result});
  };
  compare(m, "start", "bound", "go");
  graph_builder body(m.body(m.node("Loop", {form.huge_trip_count ? "huge" : "", "go", "start", "bound", "none"},
                                   {"index", "kept", "sum", "all"}),
                            "body"));
  body.input("trip", int64_type, {}).input("c", bool_type, {}).input("i", int64_type, {});
  body.input("limit", int64_type, {}).input("s", float_type, {});
  body.output("goes_on", bool_type)
      .output("next", int64_type)
      .output("limit_out", int64_type)
      .output("added")
      .output("number");
  body.integers("step", {}, {std::abs(form.step)});
  body.node("Identity", {"limit"}, {"limit_out"});
  body.node(form.step < 0 ? "Sub" : "Add", {"i", "step"}, {"next"});
  m.attribute(body.node("Cast", {"i"}, {"number"}), "to", float_type);
  body.node("Add", {"s", "number"}, {"added"});
  // tf2onnx compares floats.
  m.attribute(body.node("Cast", {"next"}, {"next_number"}), "to", float_type);
  m.attribute(body.node("Cast", {"limit"}, {"limit_number"}), "to", float_type);
  compare(body, "next_number", "limit_number", form.counts_trips ? "below" : "goes_on");
  if (form.counts_trips) {
    m.attribute(body.node("Cast", {"trip"}, {"trip_number"}), "to", float_type);
    body.node("Less", {"trip_number", "limit_number"}, {"trip_below"});
    body.node("And", {"trip_below", "below"}, {"goes_on"});
  }
  const program p = m.import();
  for (const instruction& i : p.main().instructions())
    if (const auto* op = i.op().get_if<loop>()) EXPECT_TRUE(op->count().has_value()) << p.str();
  return evaluate(p.bind({{"T", size}}).main(),
                  std::vector{floats({size}, std::vector<float>(static_cast<std::size_t>(size)))})[0]
      .to_doubles();
}

std::vector<double> trips(std::int64_t start, std::int64_t step, const std::function<bool(std::int64_t)>& goes_on) {
  std::vector<double> all;
  for (std::int64_t i = start; goes_on(i); i += step) all.push_back(static_cast<double>(i));
  return all;
}

TEST(control, loops_that_count_in_other_forms) {
  for (std::int64_t size : {1, 2, 5, 12})
    for (bool huge : {false, true}) {
      SCOPED_TRACE(std::to_string(size) + (huge ? " with a trip count" : ""));
      EXPECT_EQ(count_to_size({0, 1, "Less", false, huge}, size), trips(0, 1, [&](auto i) { return i < size; }));
      EXPECT_EQ(count_to_size({0, 1, "Less", false, huge, true}, size), trips(0, 1, [&](auto i) { return i < size; }));
      EXPECT_EQ(count_to_size({2, 3, "Less", false, huge}, size), trips(2, 3, [&](auto i) { return i < size; }));
      EXPECT_EQ(count_to_size({1, 2, "LessOrEqual", false, huge}, size),
                trips(1, 2, [&](auto i) { return i <= size; }));
      EXPECT_EQ(count_to_size({0, 1, "Greater", true, huge}, size), trips(0, 1, [&](auto i) { return size > i; }));
      EXPECT_EQ(count_to_size({9, -2, "Greater", false, huge}, size), trips(9, -2, [&](auto i) { return i > size; }));
      EXPECT_EQ(count_to_size({9, -1, "GreaterOrEqual", false, huge}, size),
                trips(9, -1, [&](auto i) { return i >= size; }));
      EXPECT_EQ(count_to_size({7, -1, "Less", true, huge}, size), trips(7, -1, [&](auto i) { return size < i; }));
    }
}

// `while i < 4 and not done`, as paddle2onnx writes it: the index is carried through additions of 0 and a change of
// rank, it selects the elements that a trip reads and writes, "done" depends on data and changes its rank in a branch,
// and a value that no trip reads gets another shape.
TEST(control, an_index_bounds_a_loop_that_data_end) {
  model_builder m;
  m.input("x", float_type, {"6"}).output("all").output("trips");
  m.integers("start", {}, {0});
  m.floats("empty", {6}, {0, 0, 0, 0, 0, 0});
  m.floats("undefined", {}, {0});
  m.integers("go_number", {}, {1});
  m.integers("done_number", {}, {0});
  m.attribute(m.node("Cast", {"go_number"}, {"go"}), "to", bool_type);
  m.attribute(m.node("Cast", {"done_number"}, {"done"}), "to", bool_type);
  graph_builder body(m.body(
      m.node("Loop", {"", "go", "start", "empty", "done", "undefined"}, {"trips", "all", "was_done", "last"}), "body"));
  body.input("trip", int64_type, {}).input("c", bool_type, {}).input("i", int64_type, {});
  body.input("buffer", float_type, {"6"}).input("d", bool_type, {}).input("unread", float_type, {});
  body.output("goes_on", bool_type).output("next", int64_type).output("written").output("d_out", bool_type);
  body.output("each");
  body.integers("one", {}, {1});
  body.integers("nothing", {1}, {0});
  body.integers("vector", {1}, {1});
  body.integers("axis", {1}, {0});
  body.integers("six", {1}, {6});
  body.integers("four", {}, {4});
  body.floats("limit", {}, {10});
  body.node("Add", {"i", "one"}, {"plus"});
  body.node("Reshape", {"i", "vector"}, {"from"});
  body.node("Reshape", {"plus", "vector"}, {"end"});
  body.node("Min", {"six", "end"}, {"to"});
  body.node("Slice", {"x", "from", "to", "axis"}, {"each"});
  body.node("Squeeze", {"from"}, {"range_from"});
  body.node("Squeeze", {"to"}, {"range_to"});
  body.node("Range", {"range_from", "range_to", "one"}, {"place"});
  body.node("ScatterElements", {"buffer", "place", "each"}, {"written"});
  body.node("ReduceSum", {"written"}, {"sum_1"});
  body.node("Squeeze", {"sum_1"}, {"sum"});
  body.node("Less", {"limit", "sum"}, {"large"});
  auto& choice = body.node("If", {"large"}, {"d_out"});
  graph_builder yes(m.body(choice, "then_branch")), no(m.body(choice, "else_branch"));
  yes.output("yes", bool_type).integers("set", {1}, {1});
  m.attribute(yes.node("Cast", {"set"}, {"yes"}), "to", bool_type);
  no.output("no", bool_type).node("Identity", {"d"}, {"no"});
  body.node("Unsqueeze", {"plus", "nothing"}, {"raised"});
  body.node("Add", {"raised", "nothing"}, {"copied"});
  body.node("Squeeze", {"copied", "nothing"}, {"next"});
  body.node("Less", {"next", "four"}, {"below"});
  body.node("Not", {"d_out"}, {"not_done"});
  body.node("And", {"below", "not_done"}, {"both"});
  m.attribute(body.node("Cast", {"both"}, {"both_number"}), "to", int64_type);
  body.node("Add", {"both_number", "nothing"}, {"both_copied"});
  m.attribute(body.node("Cast", {"both_copied"}, {"goes_on"}), "to", bool_type);
  const program p = m.import();
  const auto stopped = evaluate(p.main(), std::vector{floats({6}, {1, 2, 9, 4, 5, 6})});
  EXPECT_EQ(stopped[0], floats({6}, {1, 2, 9, 0, 0, 0}));
  EXPECT_EQ(stopped[1].at_int(0), 3);
  const auto counted = evaluate(p.main(), std::vector{floats({6}, {1, 2, 1, 2, 5, 6})});
  EXPECT_EQ(counted[0], floats({6}, {1, 2, 1, 2, 0, 0}));
  EXPECT_EQ(counted[1].at_int(0), 4);
}

// A carried integer that is doubled is no index.
TEST(control, a_condition_on_a_number_that_does_not_grow_evenly_is_computed) {
  model_builder m;
  m.output("last");
  m.integers("start", {}, {1});
  m.integers("two", {}, {2});
  m.integers("limit", {}, {50});
  m.node("Less", {"start", "limit"}, {"go"});
  graph_builder body(m.body(m.node("Loop", {"", "go", "start"}, {"last"}), "body"));
  body.input("trip", int64_type, {}).input("c", bool_type, {}).input("i", int64_type, {});
  body.output("goes_on", bool_type).output("next", int64_type);
  body.node("Mul", {"i", "two"}, {"next"});
  body.node("Less", {"next", "limit"}, {"goes_on"});
  EXPECT_EQ(evaluate(m.import().main(), std::vector<literal>{})[0].at_int(0), 64);
}

TEST(control, growth_without_a_limit_is_refused) {
  model_builder m = appending(true);
  m.graph.mutable_node(0)->set_input(0, "");
  try {
    m.import();
    FAIL() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("carried value 0 changes its shape"), std::string::npos) << e.what();
  }
}

// Running sums, and the elements doubled and collected in reverse order along axis 1.
TEST(control, a_scan_walks_its_inputs) {
  model_builder m;
  m.input("s0", float_type, {"2"}).input("xs", float_type, {"3", "2"}).output("s").output("ys");
  m.floats("two", {}, {2});
  auto& scan = m.node("Scan", {"s0", "xs"}, {"s", "ys"});
  m.attribute(scan, "num_scan_inputs", 1);
  m.attribute(scan, "scan_output_axes", std::vector<std::int64_t>{1});
  m.attribute(scan, "scan_output_directions", std::vector<std::int64_t>{1});
  graph_builder body(m.body(scan, "body"));
  body.input("s_in", float_type, {"2"}).input("x", float_type, {"2"}).output("s_out").output("y");
  body.node("Add", {"s_in", "x"}, {"s_out"});
  body.node("Mul", {"x", "two"}, {"y"});
  program p = m.import();
  std::vector<literal> inputs{floats({2}, {100, 200}), floats({3, 2}, {1, 2, 3, 4, 5, 6})};
  auto outputs = evaluate(p.main(), inputs);
  EXPECT_EQ(outputs[0].to_doubles(), (std::vector<double>{109, 212}));
  EXPECT_EQ(outputs[1].type(), (shape{element_type::f32, {2, 3}}));
  EXPECT_EQ(outputs[1].to_doubles(), (std::vector<double>{10, 6, 2, 12, 8, 4}));
}

// x[1::-1] of four elements or none.
TEST(control, a_slice_counts_backwards_in_a_branch_that_may_be_empty) {
  model_builder m;
  m.input("x", float_type, {"4"}).input("flag", bool_type, {}).output("y");
  m.integers("zero", {1}, {0});
  m.integers("none", {1}, {0});
  m.integers("one", {1}, {1});
  m.integers("far", {1}, {INT64_MIN});
  m.integers("back", {1}, {-1});
  auto& choice = m.node("If", {"flag"}, {"part"});
  graph_builder all(m.body(choice, "then_branch")), nothing(m.body(choice, "else_branch"));
  all.output("whole");
  all.node("Identity", {"x"}, {"whole"});
  nothing.output("empty");
  nothing.node("Slice", {"x", "zero", "none"}, {"empty"});
  m.node("Slice", {"part", "one", "far", "zero", "back"}, {"y"});
  const program p = m.import();
  for (const bool flag : {true, false}) {
    const std::vector<literal> inputs{floats({4}, {1, 2, 3, 4}),
                                      literal::of<std::uint8_t>({element_type::boolean, {}}, {flag})};
    EXPECT_EQ(evaluate(p.bind({{"value.flag.0", flag}}).main(), inputs)[0].to_doubles(),
              flag ? (std::vector<double>{2, 1}) : std::vector<double>{});
  }
}

// The rows that were seen; two Scans whose bodies have one name.
TEST(control, a_state_of_a_scan_grows) {
  model_builder m;
  m.input("s0", float_type, {"1", "2"}).input("xs", float_type, {"3", "2"}).output("s").output("t");
  m.integers("zero", {1}, {0});
  for (const char* name : {"s", "t"}) {
    auto& scan = m.node("Scan", {"s0", "xs"}, {name});
    m.attribute(scan, "num_scan_inputs", 1);
    m.attribute(scan, "scan_input_directions", std::vector<std::int64_t>{*name == 't'});
    graph_builder body(m.body(scan, "body"));
    body.input("s_in", float_type, {"r", "2"}).input("x", float_type, {"2"}).output("s_out");
    body.node("Unsqueeze", {"x", "zero"}, {"row"});
    graph_builder::attribute(body.node("Concat", {"s_in", "row"}, {"s_out"}), "axis", 0);
  }
  const program p = m.import();
  const auto outputs =
      evaluate(p.main(), std::vector<literal>{floats({1, 2}, {0, 0}), floats({3, 2}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(outputs[0].to_doubles(), (std::vector<double>{0, 0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(outputs[1].to_doubles(), (std::vector<double>{0, 0, 5, 6, 3, 4, 1, 2}));
}

// f(x; axis) = Softmax(x, axis) with default axis 0, which the schema of libonnx 1.12 does not have.
TEST(control, functions_of_the_model_are_expanded) {
  model_builder m;
  m.input("x", float_type, {"2", "2"}).output("rows").output("columns");
  auto& f = *m.model.add_functions();
  f.set_domain("local");
  f.set_name("F");
  f.add_input("a");
  f.add_input("unused");
  f.add_output("r");
  f.add_opset_import()->set_version(17);
  auto& inner = *f.add_node();
  inner.set_op_type("Softmax");
  inner.add_input("a");
  inner.add_output("r");
  auto& reference = *inner.add_attribute();
  reference.set_name("axis");
  reference.set_type(::onnx::AttributeProto::INT);
  reference.set_ref_attr_name("the_axis");
  ::onnx::AttributeProto standard;
  standard.set_name("the_axis");
  standard.set_type(::onnx::AttributeProto::INT);
  standard.set_i(0);
  f.GetReflection()->MutableUnknownFields(&f)->AddLengthDelimited(11, standard.SerializeAsString());
  auto& rows = m.node("F", {"x"}, {"rows"});
  rows.set_domain("local");
  m.attribute(rows, "the_axis", 1);
  m.node("F", {"x"}, {"columns"}).set_domain("local");
  program p = m.import();
  std::vector<literal> inputs{floats({2, 2}, {0, 1, 5, 9})};
  auto outputs = evaluate(p.main(), inputs);
  EXPECT_NEAR(outputs[0].at(0) + outputs[0].at(1), 1, 1e-6);
  EXPECT_NEAR(outputs[1].at(0) + outputs[1].at(2), 1, 1e-6);
}

TEST(control, a_function_that_calls_itself_is_refused) {
  model_builder m;
  m.input("x", float_type, {"2"}).output("y");
  auto& f = *m.model.add_functions();
  f.set_domain("local");
  f.set_name("F");
  f.add_input("a");
  f.add_output("r");
  auto& inner = *f.add_node();
  inner.set_op_type("F");
  inner.set_domain("local");
  inner.add_input("a");
  inner.add_output("r");
  m.node("F", {"x"}, {"y"}).set_domain("local");
  try {
    m.import();
    FAIL() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::invalid_model);
  }
}

}  // namespace
}  // namespace kiln
