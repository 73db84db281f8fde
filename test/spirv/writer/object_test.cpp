// Expressions, shape rules, launch rules, and objects that someone damaged.
#include "spirv/object.hpp"

#include <gtest/gtest.h>

#include <random>

namespace kiln::spirv {
namespace {

const std::vector<shape> inputs{{element_type::f32, {2, 3, dim::symbol("n")}}, {element_type::i64, {5}}};
const attribute_values attributes{{"k", std::int64_t{7}},
                                  {"alpha", 0.5},
                                  {"mode", std::string("cubic")},
                                  {"pads", std::vector<std::int64_t>{2, 3, 12}}};
const expression_scope scope{inputs, {}, &attributes};

std::int64_t integer(std::string_view text) { return evaluate_integer(text, scope).value(); }

TEST(expression, integers) {
  EXPECT_EQ(integer("1 + 2 * 3 - 4 / 2"), 5);
  EXPECT_EQ(integer("-(3 - 10) % 4"), 3);
  EXPECT_EQ(integer("dim(input0, 1) * dim(input1, -1)"), 15);
  EXPECT_EQ(integer("product(input0, 0, 2)"), 6);
  EXPECT_EQ(integer("rank(input0) + k"), 10);
  EXPECT_EQ(integer("ceil_div(10, 4)"), 3);
  EXPECT_EQ(integer("min(k, 3) + max(k, 3)"), 10);
  EXPECT_EQ(integer("mode == \"cubic\" ? 2 : 1 / 0"), 2);
  EXPECT_EQ(integer("type(input1) == int64 && type(input0) != float16"), 1);
  EXPECT_EQ(integer("k > 6 || 1 / 0"), 1);
  EXPECT_EQ(integer("floor(alpha * 5)"), 2);
  EXPECT_EQ(integer("item(pads, 1) * 10 + item(pads, -1) + length(pads)"), 45);
  EXPECT_EQ(integer("has(input1) * 10 + has(input2)"), 10);
  EXPECT_EQ(integer("9007199254740993 == 9007199254740992"), 0);
  EXPECT_EQ(integer("-9223372036854775807 - 1 < -9223372036854775807"), 1);
  EXPECT_EQ(integer("(-9223372036854775807 - 1) % (k - 8)"), 0);
}

TEST(expression, open_dimensions_stay_symbolic) {
  EXPECT_EQ(evaluate_integer("2 * dim(input0, 2) + 1", scope).str(), (dim(2) * dim::symbol("n") + dim(1)).str());
  EXPECT_EQ(evaluate_integer("elements(input0) / 6", scope), dim::symbol("n"));
  EXPECT_EQ(evaluate_integer("dim(input0, 2) % 5", scope).substitute({{"n", 13}}), dim(3));
  EXPECT_THROW(evaluate_integer("dim(input0, 2) > 4 ? 1 : 2", scope), error);
}

TEST(expression, open_conditions_have_the_value_of_the_condition) {
  const expression_scope open{inputs, {}, &attributes, false, true};
  const char* texts[]{"dim(input0, 2) > 4",
                      "dim(input0, 2) >= 4",
                      "4 < dim(input0, 2)",
                      "dim(input0, 2) <= k",
                      "dim(input0, 2) == 4",
                      "dim(input0, 2) != 4",
                      "dim(input0, 2) > 4 ? 10 * dim(input0, 2) : 3",
                      "dim(input0, 2) > 4 && dim(input0, 2) < 7 || dim(input0, 2) == 1",
                      "!(dim(input0, 2) > 4) + dim(input0, 2)",
                      "k == 7 && dim(input0, 2) == 5",
                      "k == 8 && dim(input0, 2) / 0",
                      "dim(input0, 2) - 4 ? 1 : 2"};
  for (const char* text : texts)
    for (std::int64_t n = 0; n < 9; ++n) {
      const std::vector<shape> known{{element_type::f32, {2, 3, n}}, {element_type::i64, {5}}};
      const dim wanted = evaluate_integer(text, {known, {}, &attributes});
      EXPECT_EQ(evaluate_integer(text, open).substitute({{"n", n}}), wanted) << text << " where n is " << n;
      EXPECT_EQ(evaluate_condition(text, open).substitute({{"n", n}}), wanted == dim(0) ? dim(0) : dim(1)) << text;
    }
  EXPECT_THROW(evaluate_integer("dim(input0, 2) > 4 ? 1.5 : 2", open), error);
}

TEST(expression, reals) {
  EXPECT_DOUBLE_EQ(evaluate_real("alpha / 4 + 1e-3", scope), 0.126);
  EXPECT_DOUBLE_EQ(evaluate_real("1.0f / elements(input1)", scope), 0.2);
}

TEST(expression, shapes) {
  EXPECT_EQ(evaluate_dims("same_as(input0)", scope), inputs[0].dims);
  EXPECT_EQ(evaluate_dims("with_dim(input0, -2, k)", scope), (std::vector<dim>{2, 7, dim::symbol("n")}));
  EXPECT_EQ(evaluate_dims("dims()", scope), std::vector<dim>{});
  EXPECT_EQ(evaluate_dims("dims(k, dim(input0, 2))", scope), (std::vector<dim>{7, dim::symbol("n")}));
  EXPECT_EQ(evaluate_type("type(input1)", scope), element_type::i64);
  EXPECT_EQ(evaluate_type("float32", scope), element_type::f32);
}

TEST(expression, mistakes_know_their_place) {
  struct {
    const char* text;
    std::size_t at;
  } cases[]{{"1 + ", 4},          {"1 + beta", 4},        {"(1", 2},
            {"1 2", 2},           {"dim(input9, 0)", 10}, {"sin(1)", 0},
            {"alpha % 2", 9},     {"item(k, 0)", 6},      {"item(pads, 3)", 13},
            {"has(output0)", 11}, {"floor(1e300)", 12}};
  for (const auto& c : cases) try {
      evaluate_integer(c.text, scope);
      FAIL() << c.text;
    } catch (const expression_error& e) {
      EXPECT_EQ(e.at(), c.at) << c.text << ": " << e.what();
    }
  EXPECT_THROW(evaluate_integer(std::string(100000, '('), scope), expression_error);
  EXPECT_THROW(evaluate_integer("1 / 0", scope), expression_error);
  EXPECT_THROW(evaluate_integer("(-9223372036854775807 - 1) / (k - 8)", scope), error);  // and not a signal
}

object example() {
  object o;
  o.domain = "d";
  o.name = "Op";
  o.attributes = attributes;
  o.results = {{"type(input0)", "same_as(input0)"}};
  o.scratch = {"4 * elements(output0)"};
  o.launches = {{"a",
                 launch_rule::per_element,
                 {"elements(output0)"},
                 {"4"},
                 "",
                 1024,
                 {{parameter_kind::input, 0},
                  {parameter_kind::scratch, 0},
                  {parameter_kind::real, 0, element_type::f64, "alpha"}}},
                {"b",
                 launch_rule::per_row,
                 {"dim(output0, 0)"},
                 {"128"},
                 "4 * k",
                 256,
                 {{parameter_kind::output, 0}, {parameter_kind::integer, 0, element_type::i32, "k - 8"}}},
                {"c", launch_rule::per_tile, {"0", "1", "1"}, {"16", "4", "1"}, "", 64, {}}};
  o.words.resize(20, std::byte{7});
  return o;
}

TEST(object, launches_for_numbers) {
  std::vector<shape> x{{element_type::f32, {6, 1000}}};
  auto r = resolve(example(), x, x);
  ASSERT_EQ(r.launches.size(), 2u);  // the third has no work
  EXPECT_EQ(r.scratch, std::vector<dim>{24000});
  EXPECT_TRUE(r.bounded.empty());
  EXPECT_EQ(r.launches[0].grid[0], 6);
  EXPECT_EQ(r.launches[1].grid[0], 6);
  EXPECT_EQ(r.launches[1].block[0], 128);
  EXPECT_EQ(r.launches[1].shared_bytes, 28);
  EXPECT_EQ(r.launches[1].arguments[1].bits, 0xffffffffu);
}

TEST(object, launches_for_open_dims) {
  const dim n = dim::symbol("n");
  std::vector<shape> x{{element_type::f32, {6, n}}};
  object o = example();
  o.launches[1].parameters[1].expression = "dim(input0, 1) - 1";
  auto r = resolve(o, x, x);
  EXPECT_EQ(r.scratch, std::vector<dim>{dim(24) * n});
  EXPECT_EQ(r.launches[0].grid[0].substitute({{"n", 1000}}), dim(6));
  EXPECT_EQ(r.launches[1].arguments[1].open, n - dim(1));
  // The grid, and the number with 32 bits.
  EXPECT_EQ(r.bounded, (std::vector<dim>{r.launches[0].grid[0], n - dim(1)}));
  o.launches[1].block = {"dim(input0, 1)"};
  EXPECT_THROW(resolve(o, x, x), error);
}

TEST(object, a_workgroup_too_large_is_refused) {
  object o = example();
  o.launches[1].block = {"512"};
  std::vector<shape> x{{element_type::f32, {6, 1000}}};
  try {
    resolve(o, x, x);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    EXPECT_NE(std::string(e.what()).find("512 threads, of at most 256"), std::string::npos);
  }
}

TEST(object, a_task_has_one_thread_where_the_limits_say_so) {
  object o = example();
  o.launches[1].rule = launch_rule::per_task;
  std::vector<shape> x{{element_type::f32, {6, 1000}}};
  EXPECT_EQ(resolve(o, x, x).launches[1].block[0], 128);
  const resolved_object alone = resolve(o, x, x, {.lone_tasks = true});
  EXPECT_EQ(alone.launches[1].block[0], 1);
  EXPECT_EQ(alone.launches[1].grid[0], 6);
  o.launches[1].block.clear();
  EXPECT_THROW(deserialize_object(serialize(o)), error);
}

TEST(object, reads_back) { EXPECT_EQ(deserialize_object(serialize(example())), example()); }

TEST(object, what_no_reader_would_take_is_not_written) {
  object o = example();
  o.launches[0].shared_bytes = std::string(longest_text + 1, '1');
  EXPECT_THROW(serialize(o), error);
  o = example();
  o.attributes[3].second = std::vector<std::int64_t>(longest_list + 1);
  EXPECT_THROW(serialize(o), error);
}

TEST(object, damage_is_an_error_and_never_a_crash) {
  const auto bytes = serialize(example());
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    auto damaged = bytes;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    if (i % 4 == 0) damaged.resize(random() % damaged.size());
    try {
      object o = deserialize_object(damaged);
      std::vector<shape> x{{element_type::f32, {6, 1000}}};
      resolve(o, x, x);
    } catch (const error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace kiln::spirv
