#include "aot/passes/constant_folding.hpp"
#include "aot/passes/reshape_groups.hpp"
#include "aot/passes/simplify_movement.hpp"
#include "aot/passes/sink_reshapes.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

until_stable simplify() { return {"simplify", {constant_folding{}, simplify_movement{}}}; }

// Checks the names of the operations that remain of a chain of movement operations, besides the parameter.
struct movement_case {
  std::string name;
  std::function<value(builder&, value)> chain;  // from x [4, 3, 5]
  std::vector<std::string> left;
};

class movement : public ::testing::TestWithParam<movement_case> {};

TEST_P(movement, becomes) {
  program p = transformed([&](builder& b) { b.out({GetParam().chain(b, b.p("x", {4, 3, 5}))}); }, {simplify()}, 0);
  std::vector<std::string> left;
  for (const instruction& i : p.main().instructions())
    if (!i.op().is<parameter>()) left.emplace_back(i.op().name());
  EXPECT_EQ(left, GetParam().left) << p.str();
}

value cut(builder& b, value v, std::vector<std::int64_t> starts, std::vector<dim> lengths,
          std::vector<std::int64_t> steps) {
  return b.m.add(slice{std::move(starts), std::move(lengths), std::move(steps)}, {v});
}

INSTANTIATE_TEST_SUITE_P(
    chains, movement,
    ::testing::Values(
        movement_case{"transposes_cancel", [](builder& b, value x) { return b.t(b.t(x, {2, 0, 1}), {1, 2, 0}); }, {}},
        movement_case{
            "transposes_compose", [](builder& b, value x) { return b.t(b.t(x, {2, 0, 1}), {2, 1, 0}); }, {"transpose"}},
        movement_case{
            "transpose_of_ones", [](builder& b, value x) { return b.t(b.r(x, {4, 1, 15}), {1, 0, 2}); }, {"reshape"}},
        movement_case{"reshapes_merge", [](builder& b, value x) { return b.r(b.r(x, {60}), {4, 3, 5}); }, {}},
        movement_case{"broadcasts_merge",
                      [](builder& b, value x) { return b.to(b.to(x, {2, 4, 3, 5}), {7, 2, 4, 3, 5}); },
                      {"broadcast"}},
        movement_case{"transpose_before_broadcast",
                      [](builder& b, value x) { return b.t(b.to(b.r(x, {60, 1}), {60, 7}), {1, 0}); },
                      {"reshape", "broadcast"}},
        movement_case{"reshape_before_broadcast",
                      [](builder& b, value x) { return b.r(b.to(x, {2, 4, 3, 5}), {2, 12, 5}); },
                      {"reshape", "broadcast"}},
        movement_case{"reshape_of_partly_stretched",
                      [](builder& b, value x) { return b.r(b.to(x, {2, 4, 3, 5}), {8, 15}); },
                      {"broadcast", "reshape"}},
        movement_case{"slices_compose",
                      [](builder& b, value x) {
                        return cut(b, cut(b, x, {3, 0, 0}, {4, 3, 5}, {-1, 1, 1}), {1, 0, 4}, {2, 3, 2}, {2, 1, -3});
                      },
                      {"slice"}},
        movement_case{
            "slice_of_everything", [](builder& b, value x) { return cut(b, x, {0, 0, 0}, {4, 3, 5}, {1, 1, 1}); }, {}},
        movement_case{"reversal_stays",
                      [](builder& b, value x) { return cut(b, x, {3, 0, 0}, {4, 3, 5}, {-1, 1, 1}); },
                      {"slice"}},
        movement_case{
            "slice_of_stretched",
            [](builder& b, value x) { return cut(b, b.to(x, {6, 4, 3, 5}), {2, 1, 0, 0}, {3, 2, 3, 5}, {1, 1, 1, 1}); },
            {"reshape", "slice", "broadcast"}},
        movement_case{
            "slice_of_one_input",
            [](builder& b, value x) { return cut(b, b.m.add(concat{1}, {x, x, x}), {0, 3, 0}, {4, 3, 5}, {1, 1, 1}); },
            {}},
        movement_case{
            "slice_across_inputs",
            [](builder& b, value x) { return cut(b, b.m.add(concat{1}, {x, x}), {0, 2, 0}, {4, 2, 5}, {1, 1, 1}); },
            {"concat", "slice"}},
        movement_case{"slice_after_reshape",
                      [](builder& b, value x) { return b.r(cut(b, x, {1, 0, 0}, {2, 3, 5}, {1, 1, 1}), {2, 15}); },
                      {"reshape", "slice"}},
        movement_case{"reshape_across_slice_stays",
                      [](builder& b, value x) { return b.r(cut(b, x, {1, 0, 0}, {2, 3, 5}, {1, 1, 1}), {6, 5}); },
                      {"slice", "reshape"}},
        movement_case{"reshape_across_one_element_stays",
                      [](builder& b, value x) { return b.r(cut(b, x, {0, 1, 0}, {4, 1, 5}, {1, 1, 1}), {2, 10}); },
                      {"slice", "reshape"}},
        movement_case{"no_padding", [](builder& b, value x) { return b.m.add(pad{{0, 0, 0}, {0, 0, 0}}, {x}); }, {}},
        movement_case{"concat_of_one", [](builder& b, value x) { return b.m.add(concat{-1}, {x}); }, {}},
        movement_case{"concat_of_concat",
                      [](builder& b, value x) { return b.m.add(concat{1}, {b.m.add(concat{-2}, {x, x}), x}); },
                      {"concat"}},
        movement_case{"gather_of_one",
                      [](builder& b, value x) { return b.m.add(gather{1}, {x, b.c(-1, element_type::i64)}); },
                      {"slice", "reshape"}},
        movement_case{"gather_of_a_run",
                      [](builder& b, value x) {
                        return b.m.add(gather{2}, {x, b.m.add_constant(literal::from_int64({1, 2, 3}))});
                      },
                      {"slice"}},
        movement_case{
            "gather_of_any",
            [](builder& b, value x) { return b.m.add(gather{2}, {x, b.m.add_constant(literal::from_int64({1, 3}))}); },
            {"constant", "gather"}}),
    [](const auto& info) { return info.param.name; });

TEST(reshape_groups, are_the_finest) {
  auto groups = reshape_groups({2, 3, 1, 20}, {6, 4, 1, 5});
  ASSERT_TRUE(groups);
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ((*groups)[0].from, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ((*groups)[0].to, (std::vector<std::size_t>{0}));
  EXPECT_EQ((*groups)[1].from, (std::vector<std::size_t>{3}));
  EXPECT_EQ((*groups)[1].to, (std::vector<std::size_t>{1, 3}));
  EXPECT_FALSE(reshape_groups({0, 3}, {3, 0}));
  dim n = dim::symbol("n");
  auto symbolic = reshape_groups({n, 6}, {n, 2, 3});
  ASSERT_TRUE(symbolic);
  EXPECT_EQ(symbolic->size(), 2u);
  auto split = reshape_groups({n * dim(12), 5}, {n, 12, 5});
  ASSERT_TRUE(split);
  EXPECT_EQ(split->size(), 2u);
  // Neither of n and 6 is smaller for all n, so that all axes are one group.
  auto unknown = reshape_groups({n, 6, 5}, {6, n, 5});
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->size(), 1u);
  dim m = dim::symbol("m");
  for (const auto& [from, to] : {std::pair{std::vector<dim>{n, 6, 5}, std::vector<dim>{n * dim(6), 5}},
                                 std::pair{std::vector<dim>{n, m, 5}, std::vector<dim>{n * m, 5}}}) {
    auto merged = reshape_groups(from, to), divided = reshape_groups(to, from);
    ASSERT_TRUE(merged && divided);
    ASSERT_EQ(merged->size(), 2u);
    EXPECT_EQ((*merged)[0].from, (std::vector<std::size_t>{0, 1}));
    EXPECT_EQ((*merged)[0].to, (std::vector<std::size_t>{0}));
    ASSERT_EQ(divided->size(), 2u);
    EXPECT_EQ((*divided)[0].to, (std::vector<std::size_t>{0, 1}));
  }
  // Neither of the products is a multiple of the other.
  auto other = reshape_groups({n * dim(3), m, 5}, {n * dim(2), m, 5});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->size(), 1u);
}

TEST(sink_reshapes, keep_epilogues_at_products) {
  auto build = [](builder& b) {
    value x = b.p("x", {10, 3});
    value y = b.r(b.m.add(dot{}, {x, b.w({3, 8})}), {2, 5, 8});
    y = b.f(exp, {b.f(add, y, b.w({8}, 2))});
    b.out({b.f(mul, {y, b.f(abs, {b.p("z", {2, 5, 8})})})});
  };
  program p = transformed(build, {sink_reshapes{}, simplify()});
  EXPECT_TRUE(p.main().outputs()[0].producer->op().is<reshape>()) << p.str();
  for (const instruction& i : p.main().instructions())
    if (i.op().str() == "exp" || i.op().str() == "mul") {
      EXPECT_EQ(i.outputs()[0].rank(), 2u);
    }
}

TEST(sink_reshapes, pass_rows_that_they_leave_alone) {
  auto build = [](builder& b) {
    value x = b.p("x", {10, 8});
    value y = b.m.add(softmax{-1}, {b.m.add(normalize{{2}, 1e-3}, {b.r(x, {2, 5, 8})})});
    b.out(
        {b.m.add(reduce{reduction_kind::sum, {2}, false}, {y}), b.m.add(reduce{reduction_kind::sum, {1}, false}, {y})});
  };
  program p = transformed(build, {sink_reshapes{}, simplify()});
  for (const instruction& i : p.main().instructions())
    if (i.op().is<normalize>() || i.op().is<softmax>()) {
      EXPECT_EQ(i.outputs()[0].str(), "f32[10, 8]");
    }
}

TEST(sink_reshapes, pass_rows_of_open_numbers) {
  dim batch = dim::symbol("batch"), sequence = dim::symbol("sequence");
  program p;
  builder b(p.main());
  value x = b.p("x", {batch * sequence, 8});
  b.out({b.r(b.m.add(normalize{{2}, 1e-3}, {b.r(x, {batch, sequence, 8})}), {batch * sequence, 8})});
  sink_reshapes{}.apply(p.main());
  simplify().apply(p);
  EXPECT_EQ(count<reshape>(p.main()), 0u) << p.str();
}

TEST(sink_reshapes, split_merged_axes_before_group_normalization) {
  auto build = [](builder& b) {
    value x = b.p("x", {2, 6, 5, 7});
    b.out({b.f(mul, b.r(b.m.add(normalize{{2}, 1e-3}, {b.r(x, {2, 3, 70})}), {2, 6, 5, 7}), b.w({6, 1, 1}))});
  };
  program p = transformed(build, {sink_reshapes{}, simplify()});
  ASSERT_EQ(count<normalize>(p.main()), 1u);
  EXPECT_EQ(only<normalize>(p.main())->axes, (std::vector<std::int64_t>{2, 3, 4})) << p.str();
}

// A scatter whose indices depend on one axis replaces rows. All such scatters share the numbers of the updates.
TEST(movement, scatters_of_rows_share_their_places) {
  for (const auto& [count, dims] : {std::pair{1, std::vector<dim>{1, 1, 1, 1}}, {4, {4, 1}}}) {
    program p = transformed(
        [&, rows = count, places = dims](builder& b) {
          value indices = b.to(b.r(b.p("positions", {rows}, element_type::i64), places), {1, 3, rows, 2});
          std::vector<value> results;
          for (const std::string n : {"k", "v"})
            results.push_back(b.m.add(scatter_elements{2},
                                      {b.p("data" + n, {1, 3, 5, 2}), indices, b.p("updates" + n, {1, 3, rows, 2})}));
          b.out(results);
        },
        {simplify()}, 0);
    EXPECT_EQ(testing::count<gather>(p.main()), 2u) << p.str();
    for (const instruction& i : p.main().instructions())
      if (i.op().is<scatter_elements>()) {
        EXPECT_EQ(i.outputs()[0].rank(), 1u) << p.str();
      }
  }
}

TEST(movement, other_scatters_stay) {
  program p = transformed(
      [](builder& b) {
        value places = b.p("positions", {1, 1, 4, 1}, element_type::i64), x = b.p("x", {1, 3, 5, 2});
        value part = b.m.add(scatter_elements{2}, {x, b.to(places, {1, 2, 4, 2}), b.p("u", {1, 2, 4, 2})});
        value sum = b.m.add(scatter_elements{2, scatter_reduction::add},
                            {x, b.to(places, {1, 3, 4, 2}), b.p("w", {1, 3, 4, 2})});
        b.out({part, sum});
      },
      {simplify()}, 0);
  EXPECT_EQ(testing::count<scatter_elements>(p.main()), 2u) << p.str();
  EXPECT_EQ(testing::count<gather>(p.main()), 0u) << p.str();
}

}  // namespace
}  // namespace kiln::testing
