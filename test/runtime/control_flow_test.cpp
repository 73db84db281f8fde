#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "ir/cancellation.hpp"
#include "ir/error.hpp"
#include "programs.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

literal flag(bool value) { return literal::of<std::uint8_t>(flag_type, {static_cast<std::uint8_t>(value)}); }
literal count(std::int64_t value) { return literal::of<std::int64_t>(count_type, {value}); }

class control_flow : public ::testing::Test {
 protected:
  host_device device{2};
  program p;
  module& m = p.main();
};

TEST_F(control_flow, if_runs_one_body) {
  module& then = p.add_module("then");
  {
    value a = then.add_parameter("a", vector_type), b = then.add_parameter("b", vector_type);
    value t = twice(p, then, add(p, then, a, b));
    then.set_outputs({add(p, then, t, a), b}, {"u", "v"});  // the second is a parameter
  }
  module& other = p.add_module("else");
  {
    value a = other.add_parameter("a", vector_type);
    other.add_parameter("b", vector_type);
    value c = other.add_constant(vector_literal(ramp(100.0f)));
    other.set_outputs({c, plus_minus(p, other, a)}, {"u", "v"});  // the first is a constant
  }
  value condition = m.add_parameter("condition", flag_type), x = m.add_parameter("x", vector_type);
  value y = exponential(p, m, x);
  value chosen = m.add(if_else{}, {condition, x, y}, {&then, &other});
  value sum = add(p, m, chosen, value{chosen.producer, 1});
  m.set_outputs({sum, chosen}, {"sum", "chosen"});
  executable e = load(p, device);
  EXPECT_EQ(e.plan().blocks.size(), 3u);
  auto input = ramp(-1.0f, 0.1f);
  auto taken = run_poisoned(e, {flag(true), vector_literal(input)});
  auto skipped = run_poisoned(e, {flag(false), vector_literal(input)});
  for (std::size_t i = 0; i < n; ++i) {
    float a = input[i], b = std::exp(a), u = 2 * (a + b) + a;
    EXPECT_FLOAT_EQ(taken[1].as<float>()[i], u) << i;
    EXPECT_FLOAT_EQ(taken[0].as<float>()[i], u + b) << i;
    EXPECT_EQ(skipped[1].as<float>()[i], 100.0f + static_cast<float>(i)) << i;
    EXPECT_FLOAT_EQ(skipped[0].as<float>()[i], 100.0f + static_cast<float>(i) + a + 1) << i;
  }
}

// Swaps its two carried values and adds the iteration to one of them. Double buffering must not mix them up.
module& swapping_body(program& p, bool scans) {
  module& body = p.add_module("body");
  value i = body.add_parameter("i", count_type), go = body.add_parameter("go", flag_type);
  value a = body.add_parameter("a", vector_type), b = body.add_parameter("b", vector_type),
        invariant = body.add_parameter("w", vector_type);
  value next = add(p, body, add_iteration(p, body, i, a), invariant);
  std::vector<value> outputs{go, b, next};
  std::vector<std::string> names{"go", "a", "b"};
  if (scans) outputs.push_back(twice(p, body, next)), names.push_back("scan");
  body.set_outputs(outputs, names);
  return body;
}

struct swapped {
  std::vector<float> a, b;
  std::vector<std::vector<float>> scans;
};
swapped expected_swaps(std::int64_t trips, std::vector<float> a, std::vector<float> b, const std::vector<float>& w) {
  swapped s{std::move(a), std::move(b), {}};
  for (std::int64_t t = 0; t < trips; ++t) {
    std::vector<float> next(n), scan(n);
    for (std::size_t i = 0; i < n; ++i) next[i] = s.a[i] + static_cast<float>(t) + w[i], scan[i] = 2 * next[i];
    s.a = s.b;
    s.b = next;
    s.scans.push_back(scan);
  }
  return s;
}

TEST_F(control_flow, loops_with_a_dynamic_trip_count_carry_values) {
  module& body = swapping_body(p, false);
  value trips = m.add_parameter("trips", count_type), go = m.add_parameter("go", flag_type);
  value a = m.add_parameter("a", vector_type), b = m.add_parameter("b", vector_type),
        w = m.add_parameter("w", vector_type);
  value result = m.add(loop{2, -1}, {trips, go, a, b, w}, {&body});
  m.set_outputs({twice(p, m, result), value{result.producer, 1}}, {"a", "b"});
  executable e = load(p, device);
  for (std::int64_t n_trips : {0, 1, 2, 3, 8, 17}) {
    auto outputs = run_poisoned(e, {count(n_trips), flag(true), vector_literal(ramp(1.0f)), vector_literal(ramp(-2.0f)),
                                    vector_literal(ramp(0.5f))});
    auto expected = expected_swaps(n_trips, ramp(1.0f), ramp(-2.0f), ramp(0.5f));
    for (float& v : expected.a) v *= 2;
    EXPECT_EQ(floats(outputs[0]), expected.a) << n_trips;
    EXPECT_EQ(floats(outputs[1]), expected.b) << n_trips;
  }
  auto none = run_poisoned(
      e, {count(5), flag(false), vector_literal(ramp(1.0f)), vector_literal(ramp(-2.0f)), vector_literal(ramp(0.5f))});
  EXPECT_EQ(floats(none[1]), ramp(-2.0f));
  auto negative = run_poisoned(
      e, {count(-3), flag(true), vector_literal(ramp(1.0f)), vector_literal(ramp(-2.0f)), vector_literal(ramp(0.5f))});
  EXPECT_EQ(floats(negative[1]), ramp(-2.0f));
}

TEST_F(control_flow, loops_with_a_static_trip_count_stack_scanned_values) {
  for (std::int64_t n_trips : {1, 2, 5, 6}) {
    program q;
    module& main = q.main();
    module& body = swapping_body(q, true);
    value trips = main.add_constant(count(n_trips)), go = main.add_constant(flag(true));
    value a = main.add_parameter("a", vector_type), b = main.add_parameter("b", vector_type);
    value w = main.add_constant(vector_literal(ramp(0.25f)));
    value result = main.add(loop{2, n_trips}, {trips, go, a, b, w}, {&body});
    main.set_outputs({result, value{result.producer, 1}, value{result.producer, 2}}, {"a", "b", "scan"});
    ASSERT_EQ(main.outputs()[2].type(), (shape{element_type::f32, {n_trips, n}}));
    executable e = load(q, device);
    auto outputs = run_poisoned(e, {vector_literal(ramp(1.0f)), vector_literal(ramp(-2.0f))});
    auto expected = expected_swaps(n_trips, ramp(1.0f), ramp(-2.0f), ramp(0.25f));
    EXPECT_EQ(floats(outputs[0]), expected.a) << n_trips;
    EXPECT_EQ(floats(outputs[1]), expected.b) << n_trips;
    for (std::int64_t t = 0; t < n_trips; ++t)
      for (std::size_t i = 0; i < n; ++i)
        ASSERT_EQ(outputs[2].as<float>()[static_cast<std::size_t>(t * n) + i],
                  expected.scans[static_cast<std::size_t>(t)][i])
            << t << " " << i;
  }
}

TEST_F(control_flow, a_loop_that_outruns_its_stacked_output_is_an_error_not_an_overflow) {
  module& body = swapping_body(p, true);
  value trips = m.add_parameter("trips", count_type), go = m.add_parameter("go", flag_type),
        a = m.add_parameter("a", vector_type);
  value result = m.add(loop{2, 3}, {trips, go, a, a, a}, {&body});
  m.set_outputs({value{result.producer, 2}}, {"scan"});
  executable e = load(p, device);
  run_poisoned(e, {count(3), flag(true), vector_literal(ramp())});
  for (std::int64_t bad : {0, 2, 4, 1000000}) {
    try {
      run_poisoned(e, {count(bad), flag(true), vector_literal(ramp())});
      ADD_FAILURE() << bad;
    } catch (const error& error) {
      EXPECT_EQ(error.kind(), error_kind::unsupported);
      EXPECT_THAT(error.what(), HasSubstr("3 trips"));
    }
  }
}

// while (sum(x) < 1000) x *= 2, with an `if` inside the loop and a loop inside the `if`.
TEST_F(control_flow, while_loops_and_nested_bodies) {
  module& inner_body = p.add_module("inner_body");
  {
    value i = inner_body.add_parameter("i", count_type), go = inner_body.add_parameter("go", flag_type),
          x = inner_body.add_parameter("x", vector_type);
    inner_body.set_outputs({go, add_iteration(p, inner_body, i, x)}, {"go", "x"});
  }
  module& then = p.add_module("then");
  {
    value x = then.add_parameter("x", vector_type), three = then.add_constant(count(3)),
          yes = then.add_constant(flag(true));
    then.set_outputs({then.add(loop{1, 3}, {three, yes, x}, {&inner_body})}, {"x"});  // + 0 + 1 + 2
  }
  module& other = p.add_module("else");
  other.set_outputs({other.add_parameter("x", vector_type)}, {"x"});
  module& body = p.add_module("body");
  {
    body.add_parameter("i", count_type);
    value go = body.add_parameter("go", flag_type), x = body.add_parameter("x", vector_type);
    value doubled = twice(p, body, x);
    value kept = body.add(if_else{}, {go, doubled}, {&then, &other});
    body.set_outputs({below_limit(p, body, kept), kept}, {"go", "x"});
  }
  value x = m.add_parameter("x", vector_type), most = m.add_constant(count(INT64_MAX)),
        yes = m.add_constant(flag(true));
  value before = twice(p, m, x);
  value result = m.add(loop{1, -1}, {most, yes, before}, {&body});
  value after = add(p, m, result, before);
  m.set_outputs({after}, {"y"});
  executable e = load(p, device);
  auto outputs = run_poisoned(e, {vector_literal(ramp(0.25f, 0.125f))});
  auto y = ramp(0.25f, 0.125f);
  auto start = y;
  for (float& v : start) v *= 2;
  y = start;
  for (bool go = true; go;) {
    float sum = 0;
    for (float& v : y) sum += v = 2 * v + 3;
    go = sum < 1000;
  }
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(outputs[0].as<float>()[i], y[i] + start[i]) << i;
}

TEST_F(control_flow, an_endless_loop_ends_when_a_stop_is_requested) {
  module& body = p.add_module("body");
  body.add_parameter("i", count_type);
  value go = body.add_parameter("go", flag_type), a = body.add_parameter("a", vector_type);
  body.set_outputs({go, twice(p, body, a)}, {"go", "a"});
  value x = m.add_parameter("x", vector_type);
  m.set_outputs({m.add(loop{1, -1}, {m.add_constant(count(INT64_MAX)), m.add_constant(flag(true)), x}, {&body})},
                {"y"});
  executable e = load(p, device);
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    request_stop(stop_reason::interrupted);
  });
  try {
    e.evaluate(std::vector{vector_literal(ramp(1.0f))});
    ADD_FAILURE() << "the loop ended";
  } catch (const error& problem) {
    EXPECT_EQ(problem.kind(), error_kind::timed_out);
  }
  later.join();
  detail::requested_stop = stop_reason::none;  // for tests that run in this process
}

TEST_F(control_flow, weights_of_bodies_are_prepared_once) {
  module& body = p.add_module("body");
  value i = body.add_parameter("i", count_type), go = body.add_parameter("go", flag_type),
        x = body.add_parameter("x", vector_type), w = body.add_parameter("w", vector_type);
  body.set_outputs({go, multiply_packed(p, body, x, w)}, {"go", "x"});
  (void)i;
  value trips = m.add_constant(count(4)), yes = m.add_constant(flag(true)), start = m.add_parameter("x", vector_type);
  value weights =
      // An invariant of the loop that is also a constant.
      m.add_constant(vector_literal(ramp(0.5f, 0.0625f)));
  m.set_outputs({m.add(loop{1, 4}, {trips, yes, start, weights}, {&body})}, {"y"});
  executable e = load(p, device);
  EXPECT_EQ(e.plan().report.prepared_made, 1u);
  EXPECT_EQ(e.plan().report.launches, 1u);
  auto outputs = run_poisoned(e, {vector_literal(ramp(1.0f))});
  auto weight = ramp(0.5f, 0.0625f);
  for (std::size_t k = 0; k < n; ++k) {
    float y = 1.0f + static_cast<float>(k);
    for (int t = 0; t < 4; ++t) y *= weight[n - 1 - k];
    EXPECT_EQ(outputs[0].as<float>()[k], y) << k;
  }
}

}  // namespace
}  // namespace kiln::testing
