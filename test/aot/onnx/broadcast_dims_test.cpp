// Open dimensions that broadcast: they are equal, or one of them is 1.
#include <gtest/gtest.h>

#include "test/aot/onnx/open_models.hpp"

namespace {

using namespace kiln;
using namespace kiln::test;

// torch's exporter writes repeat_interleave along the first axis as an Expand that fits only where one of the two sizes
// is 1 (SAM 2). Taken as equal, both would have to be 1.
TEST(broadcast_dims, sizes_that_would_have_to_be_one_may_broadcast) {
  model_builder m;
  m.input("x", float_type, {"images", "1", "3"}).input("boxes", float_type, {"masks", "1", "1"}).output("y");
  m.integers("zero", {1}, {0}), m.integers("three", {1}, {3});
  m.node("Add", {"x", "boxes"}, {"sum"});
  for (const std::string name : {"x", "boxes"}) {
    m.node("Shape", {name}, {name + "_shape"});
    m.node("Gather", {name + "_shape", "zero"}, {name + "_size"});
  }
  m.node("Mul", {"x_size", "boxes_size"}, {"rows"});
  graph_builder::attribute(m.node("Concat", {"rows", "three"}, {"wanted"}), "axis", std::int64_t{0});
  m.floats("half", {}, {0.5F}), m.integers("row", {2}, {-1, 3});
  m.node("Expand", {"half", "wanted"}, {"halves"});
  m.node("Reshape", {"sum", "row"}, {"flat"});
  graph_builder::attribute(m.node("Concat", {"flat", "halves"}, {"y"}), "axis", std::int64_t{1});
  const program p = m.import();
  EXPECT_EQ(run(p, {counting({1, 1, 3}), counting({2, 1, 1})}).to_doubles(),
            (std::vector<double>{0, 1, 2, .5, .5, .5, 1, 2, 3, .5, .5, .5}));
  EXPECT_EQ(run(p, {counting({2, 1, 3}), counting({1, 1, 1})}).to_doubles(),
            (std::vector<double>{0, 1, 2, .5, .5, .5, 3, 4, 5, .5, .5, .5}));
  EXPECT_NE(refusal([&] { run(p, {counting({2, 1, 3}), counting({3, 1, 1})}); }), "");
}

// By default two open dimensions that broadcast are assumed to be equal.
TEST(broadcast_dims, a_dimension_may_be_one_where_the_options_say_so) {
  model_builder m(18);
  m.input("x", float_type, {"n", "4"}).input("y", float_type, {"m", "4"}).output("z");
  m.floats("six", {6, 1}, {0, 1, 2, 3, 4, 5});
  m.node("Add", {"x", "y"}, {"sum"});
  m.node("Mul", {"sum", "six"}, {"z"});
  import_options options;
  options.may_be_one = {"n", "m"};
  const program open = m.import(options), assumed = m.import();
  for (auto [n, k] : {std::pair<std::int64_t, std::int64_t>{6, 6}, {1, 6}, {6, 1}, {1, 1}}) {
    const literal x = counting({n, 4}), y = counting({k, 4}), z = run(open, {x, y});
    EXPECT_EQ(z.type(), (shape{element_type::f32, {6, 4}})) << n << " " << k;
    for (std::int64_t i = 0; i < 24; ++i)
      EXPECT_EQ(z.at(i), (x.at(n == 1 ? i % 4 : i) + y.at(k == 1 ? i % 4 : i)) * static_cast<double>(i / 4));
    EXPECT_EQ(refusal([&, x = x, y = y] { run(assumed, {x, y}); }).empty(), n == 6 && k == 6);
  }
  auto expect_refusal = [&](std::int64_t n, std::int64_t k) {
    const std::string said = refusal([&] { run(open, {counting({n, 4}), counting({k, 4})}); });
    EXPECT_NE(said.find("do not broadcast"), std::string::npos) << said;
  };
  expect_refusal(2, 6), expect_refusal(6, 3), expect_refusal(7, 7);
  options.may_be_one = {"k"};
  EXPECT_NE(refusal([&] { m.import(options); }).find("--may-be-one 'k': the model has only"), std::string::npos);
}

// onnxruntime-genai adds a causal mask of [seq, seq] to scores of [seq, past+seq]: the first step has no past, later
// ones have one row.
TEST(broadcast_dims, a_mask_of_the_new_rows_fits_an_empty_past_and_steps_of_one_row) {
  model_builder m(18);
  m.input("past", float_type, {"1", "p", "2"})
      .input("x", float_type, {"1", "s", "2"})
      .input("mask", float_type, {"s", "s"});
  m.output("y").output("present");
  m.node("Neg", {"x"}, {"fresh"});
  graph_builder::attribute(m.node("Concat", {"past", "fresh"}, {"present"}), "axis", std::int64_t{1});
  graph_builder::attribute(m.node("Transpose", {"present"}, {"columns"}), "perm", std::vector<std::int64_t>{0, 2, 1});
  m.node("MatMul", {"fresh", "columns"}, {"scores"});
  m.node("Add", {"scores", "mask"}, {"y"});
  const program p = m.import();
  for (auto [past, seq] : {std::pair<std::int64_t, std::int64_t>{0, 3}, {0, 1}, {2, 1}}) {
    const literal old = counting({1, past, 2}), x = counting({1, seq, 2}), mask = counting({seq, seq});
    const literal y = run(p, {old, x, mask});
    ASSERT_EQ(y.type(), (shape{element_type::f32, {1, seq, past + seq}})) << past << " " << seq;
    for (std::int64_t i = 0; i < seq; ++i)
      for (std::int64_t k = 0; k < past + seq; ++k) {
        double score = seq == 1 ? mask.at(0) : mask.at(i * seq + k);
        for (std::int64_t c = 0; c < 2; ++c)
          score -= x.at(2 * i + c) * (k < past ? old.at(2 * k + c) : -x.at(2 * (k - past) + c));
        EXPECT_EQ(y.at(i * (past + seq) + k), score) << past << " " << seq;
      }
  }
  EXPECT_NE(
      refusal([&] { run(p, {counting({1, 2, 2}), counting({1, 3, 2}), counting({3, 3})}); }).find("do not broadcast"),
      std::string::npos);
}

// gpt_neo's layers with a window slice a table of 4 rows from p to p+s, and add it to the s new rows.
TEST(broadcast_dims, rows_of_a_table_that_ends_are_as_many_as_the_new_rows) {
  model_builder m;
  m.input("past", float_type, {"p"}).input("x", float_type, {"s"});
  m.output("y").output("present");
  m.floats("table", {4}, {0, 10, 20, 30});
  m.integers("axis", {1}, {0});
  m.node("Shape", {"past"}, {"from"});
  m.node("Shape", {"x"}, {"count"});
  m.node("Add", {"from", "count"}, {"to"});
  m.node("Slice", {"table", "from", "to", "axis"}, {"rows"});
  m.node("Add", {"x", "rows"}, {"y"});
  graph_builder::attribute(m.node("Concat", {"past", "y"}, {"present"}), "axis", std::int64_t{0});
  const program p = m.import();
  EXPECT_EQ(p.main().outputs()[0].type().str(), "f32[s]");
  EXPECT_EQ(p.main().outputs()[1].type().str(), "f32[p+s]");
  EXPECT_EQ(run(p, {counting({1}), counting({2})}).to_doubles(), (std::vector<double>{10, 21}));
}

}  // namespace
