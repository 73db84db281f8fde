#include "ir/cancellation.hpp"

#include <gtest/gtest.h>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "ir/program.hpp"

using namespace kiln;

namespace {

// A loop that adds x to itself without end.
program endless_loop() {
  program p;
  module& main = p.main();
  module& body = p.add_module("body");
  shape scalar_i64{element_type::i64, {}}, flag{element_type::boolean, {}}, vector{element_type::f32, {2}};
  body.add_parameter("i", scalar_i64);
  value go_on = body.add_parameter("c", flag), carried = body.add_parameter("v", vector);
  body.set_outputs({go_on, body.add(elementwise{scalar_function::add}, {carried, carried})}, {"c", "v"});
  value x = main.add_parameter("x", vector);
  value trips = main.add_constant(literal::of<std::int64_t>(scalar_i64, {INT64_MAX})),
        start = main.add_constant(literal::scalar(element_type::boolean, 1));
  main.set_outputs({main.add(loop{1, -1}, {trips, start, x}, {&body})}, {"y"});
  return p;
}

}  // namespace

TEST(cancellation, reaches_an_endless_loop_of_the_reference) {
  EXPECT_NO_THROW(check_stop());
  request_stop(stop_reason::time_limit);
  request_stop(stop_reason::interrupted);
  EXPECT_EQ(requested_stop(), stop_reason::time_limit) << "the first request counts";
  program p = endless_loop();
  const literal x = literal::of<float>({element_type::f32, {2}}, {1, 2});
  try {
    evaluate(p.main(), std::span(&x, 1));
    ADD_FAILURE() << "the loop ended";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::timed_out);
  }
  detail::requested_stop = stop_reason::none;  // for tests that run in this process
}
