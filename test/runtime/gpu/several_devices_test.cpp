// Two devices in one process: what a driver refuses of the streams, events and memory of another device is a clear
// error, and leaves both devices usable where the driver leaves them usable.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <array>
#include <string_view>

#include "ir/error.hpp"
#include "stand_in_driver.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

class gpu_several_devices : public on_stand_in {
 protected:
  std::unique_ptr<gpu_device> one = open_stand_in(GetParam(), 0), two = open_stand_in(GetParam(), 1);

  void TearDown() override {
    one.reset(), two.reset();
    hip() ? call("hipSetDevice", 0) : call("cuCtxSetCurrent", static_cast<void*>(nullptr));
  }

  static void expect_error(error_kind kind, const char* text, auto&& what) {
    try {
      what();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
      EXPECT_THAT(e.what(), HasSubstr(text));
    }
  }
  static void expect_works(gpu_device& device) {
    executable e = load(plain_program(), device);
    EXPECT_EQ(floats(e.evaluate(std::vector{vector_literal(ramp())})[0]), plain_result(ramp()));
  }
  bool hip() const { return GetParam().api == gpu::api::hip; }
  // A function of the driver, for what a caller does without Kiln.
  template <class... Parameters>
  void call(const char* name, Parameters... parameters) {
    void* library = ::dlopen(library_path(GetParam()).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_EQ(reinterpret_cast<int (*)(Parameters...)>(::dlsym(library, name))(parameters...), 0) << name;
  }
  // Makes a device the calling thread's, as the caller of CUDA finds its context.
  void select(int device) {
    if (hip()) return call("hipSetDevice", device);
    void* context = nullptr;
    call("cuDevicePrimaryCtxRetain", &context, device);
    call("cuCtxSetCurrent", context);
    call("cuDevicePrimaryCtxRelease_v2", device);
  }
  void allow_peer(int user, int owner) {
    void* context = nullptr;
    if (!hip()) select(owner), call("cuCtxGetCurrent", &context);
    select(user);
    hip() ? call("hipDeviceEnablePeerAccess", owner, 0u) : call("cuCtxEnablePeerAccess", context, 0u);
  }
  void* allocate(int device, std::size_t bytes) {
    void* memory = nullptr;
    select(device);
    call(hip() ? "hipMalloc" : "cuMemAlloc_v2", &memory, bytes);
    return memory;
  }
};
INSTANTIATE_TEST_SUITE_P(stand_in, gpu_several_devices, ::testing::ValuesIn(stand_ins), name_of);

TEST_P(gpu_several_devices, an_event_is_recorded_on_its_own_device_only) {
  auto event = one->make_event();
  auto stream = two->make_stream();
  expect_error(error_kind::usage, "recording an event: ", [&] { event->record(stream.get()); });
  expect_error(error_kind::usage, "of another device", [&] { event->record(stream.get()); });
  event->record();
  event->synchronize();
  EXPECT_TRUE(event->happened());
  expect_works(*one);
  expect_works(*two);
}

TEST_P(gpu_several_devices, a_stream_waits_for_an_event_of_another_device) {
  executable e = load(plain_program(), *one);
  execution_context context = e.make_context({.policy = graph_policy::off});
  io_buffers tensors(e);
  tensors.upload(std::vector{vector_literal(ramp())});
  auto event = one->make_event();
  auto first = one->make_stream(), second = two->make_stream();
  e.run(context, tensors.inputs(), tensors.outputs(), *first);
  event->record(first.get());
  EXPECT_FALSE(event->happened());
  two->wait(second.get(), *event);
  two->synchronize(second.get());
  EXPECT_TRUE(event->happened());
  EXPECT_EQ(floats(tensors.download()[0]), plain_result(ramp()));
}

TEST_P(gpu_several_devices, there_is_no_time_between_events_of_two_devices) {
  auto begin = one->make_event(), end = two->make_event();
  begin->record(), end->record();
  begin->synchronize(), end->synchronize();
  expect_error(error_kind::usage, "time between events", [&] { end->milliseconds_since(*begin); });
  auto later = two->make_event();
  later->record(), later->synchronize();
  EXPECT_GE(later->milliseconds_since(*end), 0);
}

TEST_P(gpu_several_devices, a_run_on_a_stream_of_another_device_is_refused_and_the_next_one_works) {
  auto theirs = two->make_stream();
  for (graph_policy policy : {graph_policy::off, graph_policy::on}) {
    if (policy == graph_policy::on && !one->has_graphs()) continue;
    executable e = load(plain_program(), *one);
    execution_context context = e.make_context({.policy = policy});
    io_buffers tensors(e);
    tensors.upload(std::vector{vector_literal(ramp())});
    auto foreign = one->borrow_stream(theirs->native()), own = one->make_stream();
    for (int i = 0; i < 2; ++i) {
      expect_error(error_kind::usage, "of another device",
                   [&] { e.run(context, tensors.inputs(), tensors.outputs(), *foreign); });
      e.run(context, tensors.inputs(), tensors.outputs());
      EXPECT_EQ(floats(tensors.download()[0]), plain_result(ramp()));
    }
    e.run(context, tensors.inputs(), tensors.outputs(), *own);
    one->synchronize(own.get());
    EXPECT_EQ(floats(tensors.download()[0]), plain_result(ramp()));
  }
  expect_works(*two);
}

TEST_P(gpu_several_devices, memory_of_another_device_loses_the_one_that_uses_it_and_no_other) {
  {
    executable e = load(plain_program(), *one), f = load(plain_program(), *two);
    execution_context context = e.make_context({.policy = graph_policy::off});
    io_buffers ours(e), theirs(f);
    theirs.upload(std::vector{vector_literal(ramp())});
    expect_error(error_kind::internal, "memory that is not its own",
                 [&] { e.run(context, theirs.inputs(), ours.outputs()); });
    expect_error(error_kind::device_lost, "was lost", [&] { e.run(context, ours.inputs(), ours.outputs()); });
    expect_works(*two);
  }
  expect_works(*two);
}

TEST_P(gpu_several_devices, a_peers_memory_is_used_where_the_caller_allows_it) {
  const std::size_t bytes = ramp().size() * sizeof(float);
  void* memory = allocate(1, bytes);
  allow_peer(0, 1);
  {
    executable e = load(plain_program(), *one), f = load(plain_program(), *two);
    execution_context context = e.make_context({.policy = graph_policy::off});
    io_buffers ours(e), theirs(f);
    two->upload(memory, ramp().data(), bytes);
    two->synchronize();
    const executable::input_span input(static_cast<const std::byte*>(memory), bytes);
    e.run(context, std::array{input}, ours.outputs());
    EXPECT_EQ(floats(ours.download()[0]), plain_result(ramp()));
    // The driver copies between devices that are no peers, too.
    two->copy(memory, ours.outputs()[0].data(), bytes);
    std::vector<float> back(ramp().size());
    two->download(back.data(), memory, bytes);
    EXPECT_EQ(back, plain_result(ramp()));
  }
  call(hip() ? "hipFree" : "cuMemFree_v2", memory);
}

TEST_P(gpu_several_devices, memory_of_a_pool_is_not_a_peers) {
  allow_peer(0, 1);
  executable e = load(plain_program(), *one), f = load(plain_program(), *two);
  execution_context context = e.make_context({.policy = graph_policy::off});
  io_buffers ours(e), theirs(f);
  theirs.upload(std::vector{vector_literal(ramp())});
  two->synchronize();
  if (std::string_view(GetParam().name) == "hip5") {  // has no pools
    e.run(context, theirs.inputs(), ours.outputs());
    EXPECT_EQ(floats(ours.download()[0]), plain_result(ramp()));
    return;
  }
  expect_error(error_kind::internal, "memory that is not its own",
               [&] { e.run(context, theirs.inputs(), ours.outputs()); });
}

}  // namespace
}  // namespace kiln::testing
