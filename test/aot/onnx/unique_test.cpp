// The distinct values of a tensor whose size is known, open, or depends on data itself.
#include <gtest/gtest.h>

#include "ir/error.hpp"
#include "spirv/library/reference.hpp"
#include "test/aot/onnx/model_builder.hpp"

namespace kiln {
namespace {

using test::float_type;
using test::graph_builder;
using test::int64_type;
using test::model_builder;

using integers = std::vector<std::int64_t>;

literal floats(std::vector<dim> dims, const std::vector<float>& values) {
  return literal::of<float>({element_type::f32, std::move(dims)}, values);
}

std::vector<literal> run(const program& p, const std::vector<literal>& inputs) {
  return evaluate(p.main(), inputs, spirv::library_runner(p));
}

model_builder all_results_of(const std::string& input, std::int64_t sorted) {
  model_builder m;
  m.output("values").output("first", int64_type).output("inverse", int64_type).output("counts", int64_type);
  graph_builder::attribute(m.node("Unique", {input}, {"values", "first", "inverse", "counts"}), "sorted", sorted);
  return m;
}

TEST(unique, in_both_orders) {
  for (std::int64_t sorted : {0, 1}) {
    model_builder m = all_results_of("x", sorted);
    m.input("x", float_type, {"6"});
    program p = m.import();
    auto got = run(p, {floats({6}, {2, 1, 1, 3, 4, 3})});
    auto numbers = [](const integers& values) { return literal::from_int64(values); };
    EXPECT_EQ(got[0], sorted ? floats({4}, {1, 2, 3, 4}) : floats({4}, {2, 1, 3, 4}));
    EXPECT_EQ(got[1], sorted ? numbers({1, 0, 3, 4}) : numbers({0, 1, 3, 4}));
    EXPECT_EQ(got[2], sorted ? numbers({1, 0, 0, 2, 3, 2}) : numbers({0, 1, 1, 2, 3, 2}));
    EXPECT_EQ(got[3], sorted ? numbers({2, 1, 2, 1}) : numbers({1, 2, 2, 1}));
    EXPECT_EQ(got[4], numbers({4}));
  }
}

TEST(unique, rows_are_counted) {
  model_builder m;
  m.input("x", float_type, {"4", "2"}).output("y").output("i");
  graph_builder::attribute(m.node("Unique", {"x"}, {"y", "", "i"}), "axis", 0);
  program p = m.import();
  literal x = literal::of<float>({element_type::f32, {4, 2}}, {3, 1, 2, 9, 3, 1, 3, 0});
  auto outputs = evaluate(p.main(), std::vector{x}, spirv::library_runner(p));
  auto rows = outputs[0].to_doubles();
  rows.resize(6);
  EXPECT_EQ(rows, (std::vector<double>{2, 9, 3, 0, 3, 1}));
  EXPECT_EQ(outputs[1].to_int64(), (std::vector<std::int64_t>{2, 0, 2, 1}));
  EXPECT_EQ(outputs[2].at_int(0), 3);
}

TEST(unique, of_any_size) {
  for (std::int64_t sorted : {0, 1}) {
    model_builder m = all_results_of("x", sorted);
    m.input("x", float_type, {"a", "b"});
    program p = m.import();
    auto got = run(p.bind({{"a", 2}, {"b", 4}}), {floats({2, 4}, {7, 1, 1, 3, 4, 3, 7, 7})});
    EXPECT_EQ(got[0], sorted ? floats({4}, {1, 3, 4, 7}) : floats({4}, {7, 1, 3, 4}));
    EXPECT_EQ(got[1].to_int64(), sorted ? (integers{1, 3, 4, 0}) : (integers{0, 1, 3, 4}));
    EXPECT_EQ(got[2].to_int64(), sorted ? (integers{3, 0, 0, 1, 2, 1, 3, 3}) : (integers{0, 1, 1, 2, 3, 2, 0, 0}));
    EXPECT_EQ(got[3].to_int64(), sorted ? (integers{2, 2, 1, 3}) : (integers{3, 2, 2, 1}));
    got = run(p.bind({{"a", 1}, {"b", 1}}), {floats({1, 1}, {5})});
    EXPECT_EQ(got[0], floats({1}, {5}));
    EXPECT_EQ(got[3].to_int64(), integers{1});
  }
}

TEST(unique, rows_of_any_number) {
  model_builder m;
  m.input("x", float_type, {"n", "2"}).output("y").output("counts", int64_type);
  graph_builder::attribute(m.node("Unique", {"x"}, {"y", "", "", "counts"}), "axis", 0);
  auto got = run(m.import().bind({{"n", 3}}), {floats({3, 2}, {3, 1, 2, 9, 3, 1})});
  EXPECT_EQ(got[0], floats({2, 2}, {2, 9, 3, 1}));
  EXPECT_EQ(got[1].to_int64(), (integers{1, 2}));
}

// The padding of the chosen elements is no value of its own and is not counted.
TEST(unique, of_chosen_elements) {
  for (std::int64_t sorted : {0, 1}) {
    model_builder m;
    m.input("x", float_type, {"n"}).input("chosen", test::bool_type, {"n"});
    m.node("Compress", {"x", "chosen"}, {"some"});
    m.output("values").output("first", int64_type).output("inverse", int64_type).output("counts", int64_type);
    graph_builder::attribute(m.node("Unique", {"some"}, {"values", "first", "inverse", "counts"}), "sorted", sorted);
    program p = m.import().bind({{"n", 6}});
    const literal x = floats({6}, {8, 5, 2, 5, 9, 2});
    auto chosen = [](std::vector<bool> bits) {
      const std::vector<std::uint8_t> bytes(bits.begin(), bits.end());
      return literal::of<std::uint8_t>({element_type::boolean, {6}}, bytes);
    };
    auto got = run(p, {x, chosen({false, true, true, true, false, true})});
    EXPECT_EQ(got[0], sorted ? floats({2}, {2, 5}) : floats({2}, {5, 2}));
    EXPECT_EQ(got[1].to_int64(), sorted ? (integers{1, 0}) : (integers{0, 1}));
    EXPECT_EQ(got[2].to_int64(), sorted ? (integers{1, 0, 1, 0}) : (integers{0, 1, 0, 1}));
    EXPECT_EQ(got[3].to_int64(), (integers{2, 2}));
    got = run(p, {x, chosen({false, false, false, false, false, false})});
    EXPECT_EQ(got[0].type().str(), "f32[0]");
    EXPECT_EQ(got[2].type().str(), "i64[0]");
  }
}

}  // namespace
}  // namespace kiln
