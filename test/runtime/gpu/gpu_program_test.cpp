// Whole programs on a GPU whose memory the host cannot touch.
#include <gmock/gmock.h>

#include <thread>

#include "ir/error.hpp"
#include "stand_in_driver.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class gpu_programs : public on_stand_in {};
INSTANTIATE_TEST_SUITE_P(stand_in, gpu_programs, ::testing::ValuesIn(stand_ins), name_of);

std::size_t lines(const std::string& text, const std::string& line) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(line + "\n", at)) != std::string::npos; at += line.size()) ++count;
  return count;
}

TEST_P(gpu_programs, the_same_numbers_as_on_the_host) {
  std::vector<literal> expected;
  {
    auto here = flavour;
    flavour = {};
    host_device host(2);
    program p = rich_program();
    expected = load(p, host).evaluate(std::vector{vector_literal(ramp(0.01f, 0.001f))});
    flavour = here;
  }
  auto device = open_stand_in(GetParam());
  program p = rich_program();
  executable e = load(p, *device);
  EXPECT_EQ(run_poisoned(e, {vector_literal(ramp(0.01f, 0.001f))}), expected);
  EXPECT_EQ(e.evaluate(std::vector{vector_literal(ramp(0.01f, 0.001f))}), expected);
}

TEST_P(gpu_programs, a_run_only_launches_and_waits_once) {
  auto device = open_stand_in(GetParam());
  program p = plain_program();
  executable e = load(p, *device);
  execution_context context = e.make_context({.policy = graph_policy::off});
  io_buffers a(e), b(e);
  a.upload(std::vector{vector_literal(ramp(3.0f))});
  b.upload(std::vector{vector_literal(ramp(-1.0f))});
  for (int round = 0; round < 4; ++round) {
    const io_buffers& tensors = round % 2 ? a : b;  // new pointers on every run
    control.reset();
    e.run(context, tensors.inputs(), tensors.outputs());
    std::string log = control.log();
    EXPECT_EQ(lines(log, GetParam().launch), e.plan().report.launches);
    EXPECT_EQ(lines(log, GetParam().synchronize), 1u) << log;
    EXPECT_TRUE(log.ends_with(std::string(GetParam().synchronize) + "\n") || log.ends_with("hipSetDevice\n") ||
                log.ends_with("cuCtxSetCurrent\n"))
        << log;
    EXPECT_THAT(log, Not(HasSubstr("Alloc")));
    EXPECT_THAT(log, Not(HasSubstr("Malloc")));
    EXPECT_THAT(log, Not(HasSubstr("Free")));
    EXPECT_THAT(log, Not(HasSubstr("Memcpy")));
    EXPECT_THAT(log, Not(HasSubstr("Event")));
  }
  EXPECT_EQ(floats(a.download()[0]), plain_result(ramp(3.0f)));
  EXPECT_EQ(floats(b.download()[0]), plain_result(ramp(-1.0f)));
}

TEST_P(gpu_programs, prepared_weights_replace_the_constants_they_were_made_of) {
  auto device = open_stand_in(GetParam());
  program p = plain_program();
  executable e = load(p, *device);
  EXPECT_EQ(e.plan().report.prepared_made, 1u);
  EXPECT_EQ(e.plan().report.constant_bytes, 2 * n * sizeof(float));
  EXPECT_EQ(e.plan().report.constant_device_bytes, n * sizeof(float));  // the other one is only packed
}

TEST_P(gpu_programs, programs_share_weights_and_modules) {
  auto device = open_stand_in(GetParam());
  std::size_t before = control.live();
  auto first = std::make_unique<executable>(load(plain_program(), *device));
  std::size_t uploads = control.calls(GetParam().upload), one = control.live();
  executable second = load(plain_program(), *device);
  EXPECT_EQ(control.calls(GetParam().upload), uploads);
  EXPECT_EQ(control.live(), one);
  EXPECT_EQ(second.plan().report.prepared_found, 1u);
  first.reset();
  EXPECT_EQ(floats(second.evaluate(std::vector{vector_literal(ramp())})[0]), plain_result(ramp()));
  executable other = load(plain_program(7.0f), *device);
  EXPECT_GT(control.calls(GetParam().upload), uploads);
  EXPECT_EQ(floats(other.evaluate(std::vector{vector_literal(ramp())})[0]), plain_result(ramp(), 7.0f));
  EXPECT_GT(control.live(), before);
}

// Kernels with different code share what they make of a constant if their launches say so, and a constant that only
// such launches read is not uploaded again for the second kernel.
TEST_P(gpu_programs, kernels_share_what_they_make_in_a_layout_with_a_name) {
  auto device = open_stand_in(GetParam());
  for (const char* pack : {"reverse", "reverse_shared_f32_depth_last"}) {
    program p;
    module& m = p.main();
    const value w = m.add_constant(vector_literal(ramp(1.0f)));
    const launch packing = make_launch(pack, n, {in(1), scratch(0)}, true),
                 multiply = make_launch("multiply", n, {in(0), scratch(0), out(0)});
    const scratch_buffer packed{n * sizeof(float), true};
    value y = call(p, m, "first", make_kernel({packing, multiply}, {packed}), {m.add_parameter("x", vector_type), w},
                   {vector_type});
    const auto other =
        make_kernel({packing, multiply, make_launch("twice", n, {out(0), scratch(1)})}, {packed, {n * sizeof(float)}});
    y = call(p, m, "second", other, {y, w}, {vector_type});
    m.set_outputs({y}, {"y"});
    executable e = load(p, *device);
    const bool shares = pack != std::string("reverse");
    EXPECT_EQ(e.plan().report.prepared_made, shares ? 1u : 2u);
    EXPECT_EQ(e.plan().report.prepared_bytes, (shares ? 1 : 2) * n * sizeof(float));
    const std::vector<float> result = floats(e.evaluate(std::vector{vector_literal(ramp(2.0f))})[0]);
    for (std::size_t i = 0; i < n; ++i) {
      const float weight = 1.0f + static_cast<float>(n - 1 - i);
      EXPECT_EQ(result[i], (2.0f + static_cast<float>(i)) * weight * weight);
    }
  }
}

TEST_P(gpu_programs, on_the_callers_stream_without_waiting) {
  auto device = open_stand_in(GetParam());
  executable e = load(plain_program(), *device);
  execution_context context = e.make_context({.policy = graph_policy::off});
  io_buffers a(e), b(e), c(e);
  a.upload(std::vector{vector_literal(ramp(3.0f))});
  b.upload(std::vector{vector_literal(ramp(4.0f))});
  c.upload(std::vector{vector_literal(ramp(5.0f))});
  auto theirs = device->make_stream();
  auto default_stream = device->borrow_stream(nullptr);
  control.reset();
  e.run(context, a.inputs(), a.outputs(), *theirs);
  e.run(context, b.inputs(), b.outputs(), *default_stream);  // the same arena: after the first
  EXPECT_EQ(control.calls(GetParam().synchronize), 0u);
  auto waits = [&] {
    return control.calls(GetParam().api == gpu::api::cuda ? "cuStreamWaitEvent" : "hipStreamWaitEvent");
  };
  EXPECT_EQ(waits(), 1u);                   // of the second run for the first
  e.run(context, c.inputs(), c.outputs());  // after both
  EXPECT_EQ(waits(), 2u);
  device->synchronize(default_stream.get());
  device->synchronize(theirs.get());
  EXPECT_EQ(floats(a.download()[0]), plain_result(ramp(3.0f)));
  EXPECT_EQ(floats(b.download()[0]), plain_result(ramp(4.0f)));
  EXPECT_EQ(floats(c.download()[0]), plain_result(ramp(5.0f)));
}

TEST_P(gpu_programs, the_end_of_a_context_waits_for_its_runs) {
  auto device = open_stand_in(GetParam());
  executable e = load(plain_program(), *device);
  io_buffers a(e);
  a.upload(std::vector{vector_literal(ramp(3.0f))});
  auto theirs = device->make_stream();
  {
    execution_context context = e.make_context({.policy = graph_policy::off});
    e.run(context, a.inputs(), a.outputs(), *theirs);
  }
  EXPECT_EQ(floats(a.download()[0]), plain_result(ramp(3.0f)));
}

TEST_P(gpu_programs, threads_and_devices_at_the_same_time) {
  auto one = open_stand_in(GetParam(), 0), two = open_stand_in(GetParam(), 1);
  executable e = load(plain_program(), *one), f = load(plain_program(2.0f), *two);
  auto work = [&](const executable& which, float first, float start) {
    execution_context context = which.make_context();
    io_buffers tensors(which);
    for (int i = 0; i < 20; ++i) {
      auto x = ramp(start + static_cast<float>(i));
      tensors.upload(std::vector{vector_literal(x)});
      if (i % 2) which.run(context, tensors.inputs(), tensors.outputs());
      else
        which.run(context, tensors.inputs(), tensors.outputs(), context.stream()),
            which.target().synchronize(&context.stream());
      EXPECT_EQ(floats(tensors.download()[0]), plain_result(x, first));
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back(work, std::cref(e), 0.5f, static_cast<float>(100 * t)),
        threads.emplace_back(work, std::cref(f), 2.0f, static_cast<float>(-100 * t));
  threads.emplace_back([&] {
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(floats(load(plain_program(9.0f), *one).evaluate(std::vector{vector_literal(ramp())})[0]),
                plain_result(ramp(), 9.0f));
  });
  for (std::thread& t : threads) t.join();
}

TEST_P(gpu_programs, zeroed_scratch_is_zero_and_nobody_elses) {
  auto device = open_stand_in(GetParam());
  program p;
  module& m = p.main();
  value v = m.add_parameter("x", vector_type);
  for (int i = 0; i < 3; ++i)
    v = call(p, m, "add_counter",
             make_kernel({make_launch("add_counter", n, {in(0), scratch(0), out(0)})}, {{4, false, true}}), {v},
             {vector_type});
  m.set_outputs({v}, {"y"});
  executable e = load(p, *device);
  EXPECT_EQ(e.plan().zeroed_bytes, 3u * 256u);
  EXPECT_THAT(e.plan().str(), HasSubstr("zeroed[256+4]"));
  EXPECT_EQ(floats(run_poisoned(e, {vector_literal(ramp(2.0f))})[0]), ramp(2.0f));
}

TEST_P(gpu_programs, tensor_maps_are_encoded_when_their_pointer_changes) {
  auto device = open_stand_in(GetParam());
  program p;
  module& m = p.main();
  launch l = make_launch("twice_mapped", n, {in(0), out(0)});
  l.tensor_maps.push_back({0, element_type::f32, {n}, {}, {n}, 0, 128});
  value y = call(p, m, "twice_mapped", make_kernel({l}), {m.add_parameter("x", vector_type)}, {vector_type});
  y = call(p, m, "twice_mapped", make_kernel({l}), {y}, {vector_type});
  m.set_outputs({y}, {"y"});
  executable e = load(p, *device);
  if (GetParam().api == gpu::api::hip) {
    EXPECT_THROW(e.evaluate(std::vector{vector_literal(ramp())}), error);  // says that there are none
    return;
  }
  execution_context context = e.make_context({.policy = graph_policy::off});
  io_buffers a(e), b(e);
  a.upload(std::vector{vector_literal(ramp(3.0f))});
  b.upload(std::vector{vector_literal(ramp(4.0f))});
  control.reset();
  e.run(context, a.inputs(), a.outputs());
  EXPECT_EQ(control.calls(GetParam().encode), 2u);
  e.run(context, a.inputs(), a.outputs());
  EXPECT_EQ(control.calls(GetParam().encode), 2u);
  e.run(context, b.inputs(), b.outputs());
  EXPECT_EQ(control.calls(GetParam().encode), 3u);  // the arena stays where it is
  EXPECT_EQ(floats(a.download()[0]), ramp(12.0f, 4.0f));
  EXPECT_EQ(floats(b.download()[0]), ramp(16.0f, 4.0f));

  l.tensor_maps[0].dims = {n + 1};
  program bad;
  bad.main().set_outputs({call(bad, bad.main(), "twice_mapped", make_kernel({l}),
                               {bad.main().add_parameter("x", vector_type)}, {vector_type})},
                         {"y"});
  EXPECT_THROW(load(bad, *device), error);
}

TEST_P(gpu_programs, time_per_step) {
  auto device = open_stand_in(GetParam());
  executable e = load(rich_program(), *device);
  execution_context context = e.make_context({.policy = graph_policy::off});
  io_buffers a(e);
  a.upload(std::vector{vector_literal(ramp(0.01f, 0.001f))});
  run_profile profile;
  for (int i = 0; i < 3; ++i) e.run_timed(context, a.inputs(), a.outputs(), profile);
  EXPECT_EQ(profile.runs, 3);
  std::int64_t steps = 0, sum = 0;
  for (const auto& entry : profile.instructions) steps += entry.steps, sum += entry.nanoseconds;
  EXPECT_EQ(steps % 3, 0);
  EXPECT_GE(steps, 3 * 10);
  EXPECT_GE(sum, 0);
}

TEST_P(gpu_programs, launches_that_no_gpu_takes_are_refused) {
  auto device = open_stand_in(GetParam());
  auto refuse = [&](auto edit) {
    launch l = make_launch("twice", n, {in(0), out(0)});
    edit(l);
    program p;
    p.main().set_outputs(
        {call(p, p.main(), "twice", make_kernel({l}), {p.main().add_parameter("x", vector_type)}, {vector_type})},
        {"y"});
    EXPECT_THROW(load(p, *device), error);
  };
  refuse([](launch& l) { l.grid = std::int64_t{1} << 32; });
  refuse([](launch& l) { l.grid_y = 65536; });
  refuse([](launch& l) { l.block = 2048; });
  refuse([](launch& l) { l.lds_bytes = 2 << 20; });
  refuse([](launch& l) { l.symbol = "no_such_function"; });
  flavour.target = "gfx1100";
  EXPECT_THROW(load(plain_program(), *device), error);
}

}  // namespace
}  // namespace kiln::testing
