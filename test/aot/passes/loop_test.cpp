#include "aot/passes/hoist_loop_invariants.hpp"
#include "aot/passes/release_unchanged_values.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

// A loop with three trips: carried = carried + inside(carried, invariant, iteration).
program looped(const std::function<value(builder&, value carried, value invariant, value iteration)>& inside) {
  program p;
  module& body = p.add_module("body");
  builder i(body);
  value iteration = i.p("i", {}, element_type::i64), go_on = i.p("c", {}, element_type::boolean),
        carried = i.p("v", {2, 3}), invariant = i.p("k", {2, 3});
  body.set_outputs({go_on, i.f(add, {carried, inside(i, carried, invariant, iteration)})}, {"c_out", "v_out"});
  builder b(p.main());
  value x = b.p("x", {2, 3}), k = b.p("y", {2, 3});
  b.out({b.m.add(loop{1, 3}, {b.c(3, element_type::i64), b.c(1, element_type::boolean), x, k}, {&body})});
  return p;
}

void expect_inside(const std::function<value(builder&, value, value, value)>& inside, std::size_t operations) {
  program p = looped(inside);
  p.validate();
  const auto expected = run(p);
  run_passes(p, {hoist_loop_invariants{}});
  p.validate();
  expect_equal(expected, run(p), 1e-6);
  EXPECT_EQ(count<elementwise>(p.modules().back()), operations) << p.str();
}

TEST(loop_invariants, leave_the_body) {
  expect_inside(
      [](builder& b, value carried, value k, value) { return b.f(mul, {carried, b.f(exp, {b.f(mul, k, b.c(0.5))})}); },
      2);
}

TEST(loop_invariants, leave_in_the_order_of_new_parameters) {
  expect_inside(
      [](builder& b, value carried, value k, value) {
        value second = b.f(tanh, {k}), first = b.f(exp, {k});
        return b.f(sub, {b.f(mul, {carried, first}), second});
      },
      3);
}

TEST(loop_invariants, may_be_computed_from_each_other) {
  expect_inside(
      [](builder& b, value carried, value k, value) {
        value first = b.f(exp, {k});
        return b.f(add, {b.f(mul, {carried, first}), b.f(mul, {carried, b.f(sqrt, {first})})});
      },
      4);
}

TEST(loop_invariants, that_are_results_of_the_body_leave_too) {
  expect_inside([](builder& b, value, value k, value) { return b.f(tanh, {k}); }, 1);
}

TEST(loop_invariants, do_not_include_carried_values_and_the_iteration) {
  expect_inside(
      [](builder& b, value carried, value k, value iteration) {
        value number = b.to(b.m.add(convert{element_type::f32}, {iteration}), {2, 3});
        return b.f(mul, {b.f(mul, {k, number}), b.f(tanh, {carried})});
      },
      4);
}

TEST(loop_invariants, that_are_only_moved_stay) {
  expect_inside([](builder& b, value carried, value k,
                   value) { return b.f(mul, {carried, b.to(b.m.add(slice{{0, 0}, {1, 3}, {1, 1}}, {k}), {2, 3})}); },
                2);
}

// Three trips of (a, k, b) -> (a * k + b, k, b): two of the three carried values stay as they are.
TEST(unchanged_values, become_invariants) {
  program p;
  module& body = p.add_module("body");
  builder i(body);
  i.p("i", {}, element_type::i64);
  value go_on = i.p("c", {}, element_type::boolean), a = i.p("a", {2, 3}), k = i.p("k", {2, 3}), b = i.p("b", {2, 3}),
        same = i.p("same", {2, 3});
  value next = i.f(add, {i.f(mul, {a, i.f(tanh, {k})}), i.f(mul, {b, same})});
  body.set_outputs({go_on, next, k, b, i.f(exp, {next})}, {"c_out", "a_out", "k_out", "b_out", "each"});
  builder o(p.main());
  value x = o.p("x", {2, 3}), y = o.p("y", {2, 3}), z = o.p("z", {2, 3}), w = o.p("w", {2, 3});
  value first = o.m.add(loop{3, 3}, {o.c(3, element_type::i64), o.c(1, element_type::boolean), x, y, z, w}, {&body});
  o.out({first, {first.producer, 1}, {first.producer, 2}, {first.producer, 3}});
  const auto expected = run(p);
  run_passes(p, {release_unchanged_values{}});
  p.validate();
  expect_equal(expected, run(p), 1e-6);
  EXPECT_EQ(p.main().outputs()[1], y);
  EXPECT_EQ(p.main().outputs()[2], z);
  EXPECT_EQ(p.main().outputs()[0].producer->op().get_if<loop>()->carried, 1) << p.str();
  run_passes(p, {hoist_loop_invariants{}});
  p.validate();
  expect_equal(expected, run(p), 1e-6);
  EXPECT_EQ(count<elementwise>(p.modules().back()), 3u) << p.str();
}

// A value that is passed on in another place changes.
TEST(unchanged_values, that_change_places_stay_carried) {
  program p;
  module& body = p.add_module("body");
  builder i(body);
  i.p("i", {}, element_type::i64);
  value go_on = i.p("c", {}, element_type::boolean), a = i.p("a", {2, 3}), k = i.p("k", {2, 3});
  body.set_outputs({go_on, k, a}, {"c_out", "a_out", "k_out"});
  builder o(p.main());
  value x = o.p("x", {2, 3}), y = o.p("y", {2, 3});
  value first = o.m.add(loop{2, 3}, {o.c(3, element_type::i64), o.c(1, element_type::boolean), x, y}, {&body});
  o.out({first, {first.producer, 1}});
  const auto expected = run(p);
  run_passes(p, {release_unchanged_values{}});
  p.validate();
  expect_equal(expected, run(p), 1e-6);
  EXPECT_EQ(p.main().outputs()[0].producer->op().get_if<loop>()->carried, 2);
}

}  // namespace
}  // namespace kiln::testing
