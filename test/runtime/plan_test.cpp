#include <gmock/gmock.h>

#include <thread>

#include "plan_fixture.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(plans, several_kernels_share_the_arena) {
  value x = m.add_parameter("x", vector_type);
  value c = m.add_constant(vector_literal(ramp(1.0f, 0.5f)));
  value v = add(p, m, x, c);
  for (int i = 0; i < 6; ++i) v = i % 2 ? twice(p, m, v) : add(p, m, v, c);
  value s = sum(p, m, v);
  m.set_outputs({v, s}, {"v", "s"});
  executable e = load(p, device);
  auto outputs = run_poisoned(e, {vector_literal(ramp())});
  std::vector<float> expected = ramp(), constant = ramp(1.0f, 0.5f);
  float total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    float y = expected[i] + constant[i];
    for (int k = 0; k < 6; ++k) y = k % 2 ? 2 * y : y + constant[i];
    EXPECT_EQ(outputs[0].as<float>()[i], y) << i;
    total += y;
  }
  EXPECT_FLOAT_EQ(outputs[1].as<float>()[0], total);
  const plan_report& r = e.plan().report;
  EXPECT_EQ(r.kernels, 3u);  // add, twice, sum: equal payloads are one kernel
  EXPECT_EQ(r.launches, 9u);
  EXPECT_EQ(r.copies, 0u);
  EXPECT_EQ(r.interpreted, 0u);
  EXPECT_EQ(r.constant_bytes, n * sizeof(float));
  EXPECT_EQ(r.constant_copied_bytes, 0u);
  EXPECT_EQ(r.arena_bytes, r.arena_lower_bound);
  EXPECT_EQ(r.arena_bytes, 2u * 192u);            // two vectors at a time
  EXPECT_EQ(r.arena_sum_bytes, 6u * 192u + 64u);  // the last one lives in the output buffer
}

// Launches of one work item that touch different memory run at the same time, each with scratch of its own.
TEST_F(plans, independent_launches_of_few_items_run_side_by_side) {
  const shape large{element_type::f32, {16384}};
  const auto mirror = [&](value v) {
    return call(p, m, "mirror",
                make_kernel({make_launch("mirror", 1, {in(0), scratch(0), out(0)})}, {{16384 * sizeof(float), false}}),
                {v}, {large});
  };
  value x = m.add_parameter("x", large), y = m.add_parameter("y", large);
  value a = mirror(x), b = mirror(y);
  value aa = mirror(a), bb = mirror(b), aaa = mirror(aa);
  m.set_outputs({aaa, bb}, {"a", "b"});
  std::vector<float> first(16384), second(16384);
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<float>(i), second[i] = 0.5f - first[i];
  const std::vector<literal> inputs{literal::of(large, first), literal::of(large, second)};
  for (unsigned threads : {1u, 2u, 4u}) {
    host_device on{threads};
    executable e = load(p, on);
    for (int run = 0; run < 20; ++run) {
      auto outputs = run_poisoned(e, inputs);
      for (std::size_t i = 0; i < first.size(); ++i) {
        ASSERT_EQ(outputs[0].as<float>()[i], first[first.size() - 1 - i]);
        ASSERT_EQ(outputs[1].as<float>()[i], second[i]);
      }
    }
    // Of the five, the first two and the next two are independent.
    std::vector<std::size_t> together;
    for (const plan_step& step : e.plan().blocks[0].steps) together.push_back(step.together);
    EXPECT_EQ(together, threads == 1 ? std::vector<std::size_t>(5, 1) : std::vector<std::size_t>({2, 1, 2, 1, 1}));
    EXPECT_EQ(e.plan().str().find("side by side with the next 1") == std::string::npos, threads == 1);
  }
}

TEST_F(plans, aliases_share_storage_and_reach_the_output) {
  value x = m.add_parameter("x", vector_type);
  value a = twice(p, m, x);
  value b = m.add(reshape{{dim(1), dim(n)}}, {a});
  value c = m.add(transpose{{1, 0}}, {b});  // moves a dim of size 1
  value d = m.add(reshape{{dim(n)}}, {c});
  value e = add(p, m, d, x);
  value f = m.add(reshape{{dim(n), dim(1)}}, {e});
  m.set_outputs({f, c}, {"f", "c"});
  executable run = load(p, device);
  auto outputs = run_poisoned(run, {vector_literal(ramp(-3.0f))});
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(outputs[0].as<float>()[i], 3 * (-3.0f + static_cast<float>(i)));
    EXPECT_EQ(outputs[1].as<float>()[i], 2 * (-3.0f + static_cast<float>(i)));
  }
  EXPECT_EQ(run.plan().report.arena_bytes, 0u);  // both kernels write outputs
  EXPECT_EQ(run.plan().report.copies, 0u);
}

TEST_F(plans, outputs_that_are_inputs_constants_or_twice_the_same_are_copied) {
  value x = m.add_parameter("x", vector_type);
  value c = m.add_constant(vector_literal(ramp(5.0f)));
  value t = twice(p, m, x);
  value r = m.add(reshape{{dim(n), dim(1)}}, {x});
  m.set_outputs({x, c, t, t, r}, {"x", "c", "t", "t2", "r"});
  executable e = load(p, device);
  EXPECT_EQ(e.plan().report.copies, 4u);
  auto outputs = run_poisoned(e, {vector_literal(ramp(2.0f))});
  EXPECT_EQ(floats(outputs[0]), ramp(2.0f));
  EXPECT_EQ(floats(outputs[1]), ramp(5.0f));
  EXPECT_EQ(floats(outputs[2]), ramp(4.0f, 2.0f));
  EXPECT_EQ(floats(outputs[3]), ramp(4.0f, 2.0f));
  EXPECT_EQ(floats(outputs[4]), ramp(2.0f));
}

TEST_F(plans, kernels_with_several_outputs_unused_ones_too) {
  value x = m.add_parameter("x", vector_type);
  value v = plus_minus(p, m, x);
  value minus{v.producer, 1};
  value again = plus_minus(p, m, minus);
  m.set_outputs({minus, again}, {"minus", "again"});
  auto outputs = run_poisoned(load(p, device), {vector_literal(ramp())});
  EXPECT_EQ(floats(outputs[0]), ramp(-1.0f));
  EXPECT_EQ(floats(outputs[1]), ramp(0.0f));
}

TEST_F(plans, misaligned_constants_are_copied_once) {
  auto memory = std::make_shared<std::vector<std::byte>>(n * sizeof(float) + 64);
  auto values = ramp(0.25f);
  std::byte* at = memory->data() + 1;
  while (reinterpret_cast<std::uintptr_t>(at) % 4 == 0) ++at;
  std::memcpy(at, values.data(), n * sizeof(float));
  value x = m.add_parameter("x", vector_type);
  value c = m.add_constant(literal(vector_type, std::span<const std::byte>(at, n * sizeof(float)), memory));
  m.set_outputs({add(p, m, add(p, m, x, c), c)}, {"y"});
  executable e = load(p, device);
  EXPECT_EQ(e.plan().report.constant_copied_bytes, n * sizeof(float));
  auto outputs = run_poisoned(e, {vector_literal(std::vector<float>(n, 0.0f))});
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(outputs[0].as<float>()[i], 2 * values[i]);
}

TEST_F(plans, empty_tensors_run) {
  shape empty{element_type::f32, {0}};
  value x = m.add_parameter("x", empty);
  value y = call(p, m, "twice", make_kernel({make_launch("twice", 0, {in(0), out(0)})}), {x}, {empty});
  value z = call(p, m, "twice", make_kernel({make_launch("twice", 0, {in(0), out(0)})}), {y}, {empty});
  m.set_outputs({z, x}, {"z", "x2"});
  executable e = load(p, device);
  EXPECT_EQ(e.plan().report.launches, 0u);
  execution_context context = e.make_context();
  executable::input_span in[1];
  executable::output_span out[2];
  e.run(context, in, out);
}

// --- prepare ---

TEST_F(plans, portable_kernels_are_refused_by_name) {
  value x = m.add_parameter("x", vector_type);
  auto hash = p.add_kernel(std::vector<std::byte>(10));
  value y = m.add(code_object::make("fused_gelu", code_format::mlir_bytecode, hash, "", {vector_type}), {x});
  m.set_outputs({y}, {"y"});
  expect_refused(error_kind::not_native, "'fused_gelu'");
  expect_refused(error_kind::not_native, "'fused_gelu'", {.allow_interpreter = true});
}

TEST_F(plans, portable_kernels_in_bodies_are_refused) {
  module& body = p.add_module("then");
  value b = body.add_parameter("b", vector_type);
  body.set_outputs(
      {body.add(code_object::make("hidden", code_format::mlir_bytecode, p.add_kernel({}), "", {vector_type}), {b})},
      {"y"});
  module& other = p.add_module("else");
  other.set_outputs({other.add_parameter("b", vector_type)}, {"y"});
  value flag = m.add_parameter("flag", flag_type), x = m.add_parameter("x", vector_type);
  m.set_outputs({m.add(if_else{}, {flag, x}, {&body, &other})}, {"y"});
  expect_refused(error_kind::not_native, "'hidden'");
}

TEST_F(plans, other_targets_and_open_dims_are_refused) {
  value x = m.add_parameter("x", vector_type);
  value y = m.add(
      code_object::make("k", code_format::native, p.add_kernel(serialize(make_kernel({}))), "gfx942", {vector_type}),
      {x});
  m.set_outputs({y}, {"y"});
  expect_refused(error_kind::unsupported, "'gfx942'");
  program open;
  value s = open.main().add_parameter("x", {element_type::f32, {dim::symbol("batch")}});
  open.main().set_outputs({s}, {"y"});
  try {
    load(open, device);
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::usage);
    EXPECT_THAT(e.what(), HasSubstr("batch"));
  }
}

TEST_F(plans, kernels_that_contradict_the_program_are_refused) {
  struct row {
    native_kernel kernel;
    const char* text;
  };
  native_kernel huge = make_kernel({make_launch("twice", n, {in(0), out(0)})}, {{INT64_MAX, false}});
  native_kernel wide = make_kernel({make_launch("twice", n, {in(0), out(0)})});
  wide.launches[0].grid_y = 2;
  const row rows[] = {
      {make_kernel({make_launch("twice", n, {in(1), out(0)})}), "does not have"},
      {make_kernel({make_launch("twice", n, {in(0), out(7)})}), "does not have"},
      {make_kernel({make_launch("missing", n, {in(0), out(0)})}), "'missing'"},
      {huge, "scratch"},
      {wide, "several dimensions"},
  };
  for (const row& r : rows) {
    program bad;
    value in = bad.main().add_parameter("x", vector_type);
    try {
      bad.main().set_outputs({call(bad, bad.main(), "bad", r.kernel, {in}, {vector_type})}, {"y"});
      load(bad, device);
      ADD_FAILURE() << r.text;
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), error_kind::corrupted) << e.what();
      EXPECT_THAT(e.what(), HasSubstr(r.text));
    }
  }
}

TEST_F(plans, what_no_kernel_covers_is_refused_or_interpreted_and_counted) {
  value x = m.add_parameter("x", vector_type);
  value y = m.add(transpose{{1, 0}}, {m.add(reshape{{dim(1), dim(n)}}, {twice(p, m, x)})});
  value z = m.add(concat{0}, {y, y});
  z.producer->set_origin("Concat_3");
  m.set_outputs({z}, {"z"});
  expect_refused(error_kind::not_native, "Concat_3");
  executable e = load(p, device, {.allow_interpreter = true});
  EXPECT_EQ(e.plan().report.interpreted, 1u);
  auto outputs = run_poisoned(e, {vector_literal(ramp(1.0f))});
  for (std::size_t i = 0; i < 2 * n; ++i) EXPECT_EQ(outputs[0].as<float>()[i], 2 * (1.0f + static_cast<float>(i % n)));
}

TEST_F(plans, wrong_tensors_are_refused_by_name) {
  value x = m.add_parameter("pixels", vector_type);
  value y = twice(p, m, x);
  m.set_outputs({y, y}, {"scores", "again"});
  executable e = load(p, device);
  execution_context context = e.make_context();
  std::vector<float> a(n + 1), b(n), c(n);
  auto bytes = [](std::vector<float>& v, std::size_t count) {
    return std::as_writable_bytes(std::span(v).first(count));
  };
  auto refusal = [&](std::vector<executable::input_span> in, std::vector<executable::output_span> out) -> std::string {
    try {
      e.run(context, in, out);
    } catch (const error& error) {
      EXPECT_EQ(error.kind(), error_kind::usage);
      return error.what();
    }
    return "ran";
  };
  EXPECT_EQ(refusal({bytes(a, n)}, {bytes(b, n), bytes(c, n)}), "ran");
  EXPECT_THAT(refusal({}, {bytes(b, n), bytes(c, n)}), HasSubstr("0 inputs"));
  EXPECT_THAT(refusal({bytes(a, n + 1)}, {bytes(b, n), bytes(c, n)}), HasSubstr("'pixels'"));
  EXPECT_THAT(refusal({bytes(a, n)}, {bytes(b, n - 1), bytes(c, n)}), HasSubstr("'scores'"));
  EXPECT_THAT(refusal({bytes(a, n)}, {bytes(b, n), bytes(b, n)}), HasSubstr("'again' overlaps output 'scores'"));
  EXPECT_THAT(refusal({bytes(b, n)}, {bytes(b, n), bytes(c, n)}), HasSubstr("'scores' overlaps input 'pixels'"));
  EXPECT_THAT(refusal({bytes(b, n)}, {bytes(b, n), bytes(c, n)}),
              HasSubstr("'scores' overlaps input 'pixels'"));  // the second time, too
  auto shifted = std::as_writable_bytes(std::span(a)).subspan(1, n * sizeof(float));
  EXPECT_THAT(refusal({shifted}, {bytes(b, n), bytes(c, n)}), HasSubstr("'pixels' is not aligned"));
  try {
    e.evaluate(std::vector{literal::filled({element_type::f32, {1, n}}, 0)});
    ADD_FAILURE();
  } catch (const error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'pixels' is f32[1, 37]"));
  }
}

// --- running ---

TEST_F(plans, contexts_run_at_the_same_time) {
  value x = m.add_parameter("x", vector_type);
  value v = x;
  for (int i = 0; i < 10; ++i) v = i % 2 ? twice(p, m, v) : add(p, m, v, x);
  m.set_outputs({v}, {"y"});
  executable e = load(p, device);
  auto caller = [&](float first) {
    execution_context context = e.make_context();
    auto input = ramp(first);
    executable::input_span in[] = {std::as_bytes(std::span(input))};
    for (int round = 0; round < 200; ++round) {
      std::vector<float> result(n, NAN);
      executable::output_span out[] = {std::as_writable_bytes(std::span(result))};
      e.run(context, in, out);
      for (std::size_t i = 0; i < n; ++i) {
        float y = input[i];
        for (int k = 0; k < 10; ++k) y = k % 2 ? 2 * y : y + input[i];
        ASSERT_EQ(result[i], y);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(caller, static_cast<float>(t));
  for (auto& t : threads) t.join();
}

TEST_F(plans, timed_runs_name_every_instruction) {
  value x = m.add_parameter("x", vector_type);
  m.set_outputs({sum(p, m, exponential(p, m, x))}, {"y"});
  executable e = load(p, device);
  execution_context context = e.make_context();
  auto input = ramp(0.0f, 0.01f);
  float result = NAN;
  executable::input_span in[] = {std::as_bytes(std::span(input))};
  executable::output_span out[] = {std::as_writable_bytes(std::span(&result, 1))};
  run_profile profile;
  for (int i = 0; i < 3; ++i) e.run_timed(context, in, out, profile);
  float expected = 0;
  for (float v : input) expected += std::exp(v);
  EXPECT_FLOAT_EQ(result, expected);
  ASSERT_EQ(profile.instructions.size(), 2u);
  EXPECT_EQ(profile.runs, 3);
  EXPECT_EQ(profile.instructions[0].steps, 3);
  EXPECT_EQ(profile.instructions[1].steps, 6);  // two launches each
  std::int64_t sum_of_steps = 0;
  for (const auto& entry : profile.instructions) {
    EXPECT_GT(entry.nanoseconds, 0);
    sum_of_steps += entry.nanoseconds;
  }
  EXPECT_LE(sum_of_steps, profile.nanoseconds);
  EXPECT_EQ(e.plan().instructions()[1].name, "sum");
  EXPECT_EQ(e.plan().instructions()[1].origin, "node of sum");
  EXPECT_THAT(e.plan().str(), HasSubstr("launch sum grid 5 (arena["));
}

}  // namespace
}  // namespace kiln::testing
