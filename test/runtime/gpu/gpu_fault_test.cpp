// Drivers whose calls fail, and devices that are lost: a typed error, no leaks, and a clear error for every later call.
#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "ir/error.hpp"
#include "stand_in_driver.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

class gpu_faults : public on_stand_in {};
INSTANTIATE_TEST_SUITE_P(stand_in, gpu_faults, ::testing::ValuesIn(stand_ins), name_of);

// Calls everything that a device offers, from opening to closing.
void whole_life(const stand_in_kind& kind) {
  auto device = open_stand_in(kind);
  executable e = load(rich_program(), *device);
  execution_context context = e.make_context();
  io_buffers tensors(e);
  tensors.upload(std::vector{vector_literal(ramp(0.01f, 0.001f))});
  e.run(context, tensors.inputs(), tensors.outputs());
  tensors.download();
  auto stream = device->make_stream();
  e.run(context, tensors.inputs(), tensors.outputs(), *stream);
  device->synchronize(stream.get());
  run_profile profile;
  e.run_timed(context, tensors.inputs(), tensors.outputs(), profile);
  device->to_machine_code(module_text());
}

TEST_P(gpu_faults, every_call_may_fail_at_its_first_uses) {
  control.reset();
  whole_life(GetParam());
  EXPECT_EQ(control.live(), 0u) << control.live_names();
  std::istringstream log(control.log());
  std::set<std::string> names;
  for (std::string name; std::getline(log, name);) names.insert(name);
  EXPECT_GT(names.size(), 25u);
  int failed = 0, survived = 0;
  for (const std::string& name : names)
    for (std::size_t nth : {1, 2, 3, 5, 8, 20})
      for (int status : {2, 719}) {
        control.reset();
        control.fail(name.c_str(), nth, status);
        std::string where = name + " #" + std::to_string(nth) + " " + std::to_string(status);
        SCOPED_TRACE(where);
        try {
          whole_life(GetParam());
          ++survived;
        } catch (const error& e) {
          EXPECT_EQ(exit_code(e.kind()), 4) << e.what();
          EXPECT_FALSE(std::string(e.what()).empty());
          ++failed;
        }
        EXPECT_EQ(control.live(), 0u) << control.live_names();
        EXPECT_EQ(control.late_uses(), 0u);
      }
  EXPECT_GT(failed, 150);
  // Failures in calls that release something, and in calls that are made less often.
  EXPECT_GT(survived, 20);
}

TEST_P(gpu_faults, a_device_may_go_at_any_time) {
  control.reset();
  whole_life(GetParam());
  std::size_t calls = control.calls(nullptr);
  int failed = 0;
  std::istringstream log(control.log());
  std::vector<std::string> sequence;
  for (std::string name; std::getline(log, name);) sequence.push_back(name);
  std::map<std::string, std::size_t> seen;
  // Odd, because without a context of the caller's own most calls come in fours: two before it and one after it are
  // about contexts.
  const std::size_t step = (calls / 400) | 1;
  for (std::size_t at = 0; at < sequence.size(); ++at) {
    std::size_t nth = ++seen[sequence[at]];
    if (at % step) continue;
    // A call fails in such a way that nothing works afterwards: our code treats 999 as a lost device, and the stand-in
    // returns it from then on.
    control.reset();
    control.fail(sequence[at].c_str(), nth, 999);
    try {
      whole_life(GetParam());
    } catch (const error& e) {
      EXPECT_EQ(exit_code(e.kind()), 4) << e.what();
      ++failed;
    }
    EXPECT_EQ(control.live(), 0u) << sequence[at] << " " << nth << ": " << control.live_names();
  }
  EXPECT_GT(failed, 100);
}

TEST_P(gpu_faults, a_lost_device_says_so_from_then_on) {
  auto device = open_stand_in(GetParam());
  executable e = load(plain_program(), *device);
  execution_context context = e.make_context();
  io_buffers tensors(e);
  tensors.upload(std::vector{vector_literal(ramp())});
  e.run(context, tensors.inputs(), tensors.outputs());
  control.lose_device(999);
  EXPECT_THROW(e.run(context, tensors.inputs(), tensors.outputs()), error);
  std::size_t calls = control.calls(nullptr);
  auto expect_lost = [](auto what) {
    try {
      what();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const error& err) {
      EXPECT_EQ(err.kind(), error_kind::device_lost);
      EXPECT_THAT(err.what(), HasSubstr("was lost"));
    }
  };
  expect_lost([&] { e.run(context, tensors.inputs(), tensors.outputs()); });
  expect_lost([&] { e.run(context, tensors.inputs(), tensors.outputs(), context.stream()); });
  expect_lost([&] { tensors.download(); });
  expect_lost([&] { device->allocate(64); });
  expect_lost([&] { load(plain_program(3.0f), *device); });
  expect_lost([&] { device->synchronize(); });
  EXPECT_EQ(control.calls(nullptr), calls);  // the device was not called
}

TEST_P(gpu_faults, a_kernel_that_fails_is_an_error_of_its_run) {
  auto device = open_stand_in(GetParam());
  program p;
  launch fault = make_launch("fault", 1, {in(0), out(0)});
  p.main().set_outputs(
      {call(p, p.main(), "fault", make_kernel({fault}), {p.main().add_parameter("x", vector_type)}, {vector_type})},
      {"y"});
  executable e = load(p, *device);
  try {
    e.evaluate(std::vector{vector_literal(ramp())});
    ADD_FAILURE();
  } catch (const error& err) {
    EXPECT_EQ(err.kind(), error_kind::internal);
    EXPECT_THAT(err.what(), HasSubstr("accessed memory"));
  }
}

TEST_P(gpu_faults, a_launch_that_is_refused_names_its_kernel_and_the_next_run_works) {
  auto device = open_stand_in(GetParam());
  executable e = load(plain_program(), *device);
  execution_context context = e.make_context({.policy = graph_policy::off});  // every run launches
  io_buffers tensors(e);
  tensors.upload(std::vector{vector_literal(ramp())});
  control.fail(GetParam().launch, 2, 701);
  try {
    e.run(context, tensors.inputs(), tensors.outputs());
    ADD_FAILURE();
  } catch (const error& err) {
    EXPECT_EQ(err.kind(), error_kind::compile_failed);
    EXPECT_THAT(err.what(), HasSubstr("kernel 'add'"));
  }
  control.fail(GetParam().launch, 1, 701);
  EXPECT_THROW(e.run(context, tensors.inputs(), tensors.outputs(), context.stream()), error);
  e.run(context, tensors.inputs(), tensors.outputs());
  EXPECT_EQ(floats(tensors.download()[0]), plain_result(ramp()));
}

TEST_P(gpu_faults, work_that_does_not_end_times_out) {
  {
    auto device = open_stand_in(GetParam());
    executable good = load(plain_program(), *device);
    EXPECT_EQ(floats(good.evaluate(std::vector{vector_literal(ramp())})[0]), plain_result(ramp()));
    program p;
    p.main().set_outputs({call(p, p.main(), "hang", make_kernel({make_launch("hang", 1, {in(0), out(0)})}),
                               {p.main().add_parameter("x", vector_type)}, {vector_type})},
                         {"y"});
    executable e = load(p, *device);
    // Only now: a busy machine may take longer than this for work that ends.
    device->set_wait_limit(std::chrono::milliseconds(30));
    try {
      e.evaluate(std::vector{vector_literal(ramp())});
      ADD_FAILURE();
    } catch (const error& err) {
      EXPECT_EQ(err.kind(), error_kind::timed_out);
    }
    EXPECT_THROW(good.evaluate(std::vector{vector_literal(ramp())}), error);
  }
  // Releasing memory would wait for the work, so nothing was released; the process is expected to end.
  EXPECT_GT(control.live(), 0u);
  forget_ = true;
}

TEST_P(gpu_faults, out_of_memory_is_an_error_and_the_device_works_on) {
  auto device = open_stand_in(GetParam());
  control.fail(GetParam().allocate, 1, 2);
  device_memory second_try = device->allocate(1000);  // unused memory is given back and the driver asked again
  EXPECT_NE(second_try.data(), nullptr);
  control.fail(GetParam().allocate, 1, 2);
  control.fail(GetParam().allocate, 2, 2);
  try {
    device->allocate(12345678);
    ADD_FAILURE();
  } catch (const error& err) {
    EXPECT_EQ(err.kind(), error_kind::out_of_memory);
    EXPECT_THAT(err.what(), HasSubstr("12345678 bytes"));
  }
  EXPECT_NE(device->allocate(1000).data(), nullptr);
}

TEST_P(gpu_faults, a_refused_module_comes_with_the_drivers_words) {
  auto device = open_stand_in(GetParam());
  native_kernel kernel;
  std::string text = "nonsense";
  kernel.object.assign(reinterpret_cast<const std::byte*>(text.data()),
                       reinterpret_cast<const std::byte*>(text.data()) + text.size());
  const native_kernel* list[] = {&kernel};
  try {
    device->load(list);
    ADD_FAILURE();
  } catch (const error& err) {
    EXPECT_EQ(err.kind(), error_kind::compile_failed);
    EXPECT_THAT(err.what(), HasSubstr(GetParam().api == gpu::api::cuda ? "line 1: not a stand-in module"
                                                                       : "the driver refuses the module"));
  }
  auto refuse = [&](std::string damaged) {
    kernel.object.assign(reinterpret_cast<const std::byte*>(damaged.data()),
                         reinterpret_cast<const std::byte*>(damaged.data()) + damaged.size());
    try {
      device->load(list);
      ADD_FAILURE();
    } catch (const error& err) {
      EXPECT_EQ(err.kind(), error_kind::corrupted) << err.what();
    }
  };
  refuse("");
  refuse(std::string("a\0b", 3));
  refuse("\177ELF");
  std::string header(64, '\0');
  header.replace(0, 5, "\177ELF\2");
  // A section table beyond the end of the file.
  header[40] = 100, header[60] = 1;
  refuse(header);
}

}  // namespace
}  // namespace kiln::testing
