// Ranks that depend on open dimensions: one rank is assumed at import, and the other sizes are refused when the model
// runs.
#include <gtest/gtest.h>

#include "test/aot/onnx/open_models.hpp"

namespace {

using namespace kiln;
using namespace kiln::test;

// torch's squeeze of an open dimension: If(n == 1) Squeeze else Identity, applied to x[b, n] after a pooling that
// halves n.
model_builder squeezing(bool rank_one_after) {
  model_builder m;
  m.input("x", float_type, {"b", "1", "n"}).output("y");
  auto& pool = m.node("MaxPool", {"x"}, {"half"});
  graph_builder::attribute(pool, "kernel_shape", std::vector<std::int64_t>{2});
  graph_builder::attribute(pool, "strides", std::vector<std::int64_t>{2});
  m.integers("axis", {1}, {2}), m.integers("one", {1}, {1});
  m.node("Shape", {"half"}, {"shape"});
  m.node("Gather", {"shape", "axis"}, {"size"});
  m.node("Equal", {"size", "one"}, {"single"});
  auto& decide = m.node("If", {"single"}, {"squeezed"});
  graph_builder yes(graph_builder::body(decide, "then_branch")), no(graph_builder::body(decide, "else_branch"));
  yes.node("Squeeze", {"half", "axis"}, {"less"});
  yes.output("less");
  no.node("Identity", {"half"}, {"same"});
  no.output("same");
  // Only the squeezed value has the right rank here.
  if (rank_one_after) {
    m.integers("first", {1}, {1});
    m.node("Squeeze", {"squeezed", "first"}, {"flat"});
    m.floats("w", {1, 3}, {1, 2, 3});
    m.node("Unsqueeze", {"flat", "first"}, {"column"});
    m.node("Gemm", {"column", "w"}, {"y"});
  } else {
    m.node("Relu", {"squeezed"}, {"y"});
  }
  return m;
}

TEST(open_ranks, of_branches_of_different_ranks_the_one_is_assumed_that_fits_the_model) {
  program p = squeezing(true).import();
  EXPECT_EQ(run(p, {counting({4, 1, 3})}).type(), (shape{element_type::f32, {4, 3}}));
  std::string why = refusal([&] { run(p, {counting({4, 1, 6})}); });
  EXPECT_NE(why.find("other sizes take the else branch"), std::string::npos) << why;
}

TEST(open_ranks, of_branches_of_different_ranks_the_general_one_is_assumed_where_both_fit) {
  program p = squeezing(false).import();
  EXPECT_EQ(run(p, {counting({4, 1, 6})}).type(), (shape{element_type::f32, {4, 1, 3}}));
  std::string why = refusal([&] { run(p, {counting({4, 1, 3})}); });
  EXPECT_NE(why.find("other sizes take the then branch"), std::string::npos) << why;
  EXPECT_EQ(run(squeezing(false).import(with({"n=3"})), {counting({4, 1, 3})}).type().rank(), 2u);
}

// Squeeze without axes removes every axis of size 1. Open sizes are assumed to be others.
TEST(open_ranks, squeeze_without_axes_keeps_open_axes_and_refuses_their_size_1) {
  model_builder m;
  m.input("x", float_type, {"b", "1", "n"}).output("y");
  m.node("Squeeze", {"x"}, {"y"});
  const program p = m.import();
  EXPECT_EQ(run(p, {counting({4, 1, 3})}).type(), (shape{element_type::f32, {4, 3}}));
  const std::string why = refusal([&] { run(p, {counting({1, 1, 3})}); });
  EXPECT_NE(why.find("a size of 1 for b gives another rank"), std::string::npos) << why;
  EXPECT_EQ(run(m.import(with({"b=1"})), {counting({1, 1, 3})}).type(), (shape{element_type::f32, {3}}));
  EXPECT_EQ(run(m.import(with({"b=0:8"})), {counting({0, 1, 2})}).type(), (shape{element_type::f32, {0, 2}}));
  EXPECT_TRUE(m.import(with({"b=2:8", "n=3"})).guards.empty());
}

}  // namespace
