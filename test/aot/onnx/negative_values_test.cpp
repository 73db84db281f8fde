// Elements of inputs that decide sizes, where a negative one has a meaning: -1 in the shape of a Reshape, places of a
// Slice that count from the end.
#include <gtest/gtest.h>

#include "test/aot/onnx/open_models.hpp"

namespace {

using namespace kiln;
using namespace kiln::test;

// The first output; `integers` are the inputs after x.
literal with_integers(const program& p, const literal& x, const std::vector<std::vector<std::int64_t>>& integers) {
  std::vector<literal> inputs{x};
  dim_bindings sizes = bind_shapes(std::vector<given_shape>{{"x", p.main().parameters()[0].type(), x.type()}});
  for (const auto& numbers : integers) {
    inputs.push_back(literal::from_int64(numbers));
    sizes.merge(
        bind_values(p.symbols, module::parameter_name(p.main().parameters()[inputs.size() - 1]), inputs.back()));
  }
  return evaluate(p.bind(sizes).main(), inputs)[0];
}

TEST(negative_values, one_dimension_of_a_new_shape_is_what_remains) {
  model_builder m;
  m.input("x", float_type, {"n"}).input("sizes", int64_type, {"3"}).output("y");
  m.node("Reshape", {"x", "sizes"}, {"y"});
  const program p = m.import();
  auto dims = [&](const std::vector<std::int64_t>& sizes) {
    return with_integers(p, counting({12}), {sizes}).type().dims;
  };
  EXPECT_EQ(dims({3, 2, 2}), (std::vector<dim>{3, 2, 2}));
  EXPECT_EQ(dims({3, -1, 2}), (std::vector<dim>{3, 2, 2}));
  EXPECT_EQ(dims({-1, 1, 12}), (std::vector<dim>{1, 1, 12}));
  EXPECT_EQ(dims({6, 2, -1}), (std::vector<dim>{6, 2, 1}));
  for (const std::vector<std::int64_t>& wrong :
       std::vector<std::vector<std::int64_t>>{{5, -1, 2}, {-1, -1, 2}, {3, 3, 2}, {-2, 3, 2}})
    EXPECT_NE(refusal([&] { dims(wrong); }), "");
}

TEST(negative_values, places_of_a_slice_count_from_the_end) {
  model_builder m;
  m.input("x", float_type, {"n"}).input("start", int64_type, {"1"}).input("end", int64_type, {"1"}).output("y");
  m.node("Slice", {"x", "start", "end"}, {"y"});
  const program p = m.import();
  auto part = [&](std::int64_t start, std::int64_t end) {
    return with_integers(p, counting({5}), {{start}, {end}}).to_doubles();
  };
  EXPECT_EQ(part(1, 4), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(part(-2, 5), (std::vector<double>{3, 4}));
  EXPECT_EQ(part(0, -1), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(part(-4, -2), (std::vector<double>{1, 2}));
  EXPECT_EQ(part(-9, 2), (std::vector<double>{0, 1}));
  EXPECT_EQ(part(2, INT64_MAX), (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(part(3, 3), std::vector<double>());
}

// The number of rows is the end of a Slice, and k of a TopK, which cannot be negative.
TEST(negative_values, are_refused_where_the_model_has_no_meaning_for_them) {
  model_builder m;
  m.input("x", float_type, {"n"}).input("k", int64_type, {"1"}).output("y");
  m.integers("zero", {1}, {0});
  m.node("Slice", {"x", "zero", "k"}, {"part"});
  m.node("TopK", {"part", "k"}, {"y", "order"});
  const program p = m.import();
  EXPECT_EQ(with_integers(p, counting({5}), {{2}}).to_doubles(), (std::vector<double>{1, 0}));
  EXPECT_NE(refusal([&] { with_integers(p, counting({5}), {{-1}}); }), "");
}

// `k` decides a size, the labels do not: -1 is the last class.
TEST(negative_values, of_inputs_that_decide_no_size_are_data) {
  model_builder m;
  m.input("x", float_type, {"n"}).input("labels", int64_type, {"2"}).input("k", int64_type, {"1"});
  m.output("y").output("hot").output("negative");
  m.integers("zero", {1}, {0});
  m.integers("depth", {}, {3});
  m.integers("none", {}, {0});
  m.floats("values", {2}, {0, 1});
  m.node("Slice", {"x", "zero", "k"}, {"y"});
  m.node("OneHot", {"labels", "depth", "values"}, {"hot"});
  m.node("Less", {"labels", "none"}, {"negative"});
  const program p = m.import();
  const auto results =
      evaluate(p.bind({{"n", 5}, {"value.k.0", 2}}).main(),
               std::vector<literal>{counting({5}), literal::from_int64({-1, 1}), literal::from_int64({2})});
  EXPECT_EQ(results[1].to_doubles(), (std::vector<double>{0, 0, 1, 0, 1, 0}));
  EXPECT_EQ(results[2].to_doubles(), (std::vector<double>{1, 0}));
}

// The second number decides a size, the first only a comparison.
TEST(negative_values, of_an_input_that_decides_a_size_are_refused) {
  model_builder m;
  m.input("x", float_type, {"n"}).input("numbers", int64_type, {"2"}).output("y").output("negative");
  m.integers("zero", {1}, {0});
  m.integers("one", {1}, {1});
  m.integers("two", {1}, {2});
  m.node("Slice", {"numbers", "zero", "one"}, {"first"});
  m.node("Slice", {"numbers", "one", "two"}, {"second"});
  m.node("Slice", {"x", "zero", "second"}, {"y"});
  m.node("Less", {"first", "zero"}, {"negative"});
  const program p = m.import();
  EXPECT_EQ(with_integers(p, counting({5}), {{1, 2}}).to_doubles(), (std::vector<double>{0, 1}));
  EXPECT_NE(refusal([&] { with_integers(p, counting({5}), {{-1, 2}}); }), "");
}

}  // namespace
