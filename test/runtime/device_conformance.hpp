// What every device must do. A device's test instantiates it with a maker and kernels of that device's kind:
//   INSTANTIATE_TYPED_TEST_SUITE_P(host, device_conformance, host_traits);
// where traits provide `static std::unique_ptr<device> make()`, `static native_kernel kernel()` (the functions `add`
// and `twice` over 37 floats, as in kernels/tensors.c) and `static const char* target()`.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "ir/error.hpp"
#include "runtime/arena.hpp"
#include "runtime/device.hpp"

namespace kiln::testing {

template <class Traits>
class device_conformance : public ::testing::Test {
 protected:
  std::unique_ptr<device> target = Traits::make();
};
TYPED_TEST_SUITE_P(device_conformance);

TYPED_TEST_P(device_conformance, says_what_it_is) {
  const device_info& info = this->target->info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.description.empty());
  EXPECT_GE(info.threads, 1u);
  EXPECT_GT(info.memory_bytes, std::uint64_t{1} << 20);
  EXPECT_TRUE(this->target->runs(TypeParam::target()));
  EXPECT_FALSE(this->target->runs("no-such-target"));
}

TYPED_TEST_P(device_conformance, memory_is_aligned_and_its_own) {
  std::vector<device_memory> blocks;
  for (std::size_t bytes : {1u, 63u, 64u, 4097u, 3u << 20}) {
    blocks.push_back(this->target->allocate(bytes));
    ASSERT_NE(blocks.back().data(), nullptr);
    EXPECT_EQ(blocks.back().size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().data()) % this->target->info().alignment, 0u);
    std::vector<std::byte> fill(bytes, static_cast<std::byte>(blocks.size()));
    this->target->upload(blocks.back().data(), fill.data(), bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::vector<std::byte> back(blocks[i].size());
    this->target->download(back.data(), blocks[i].data(), back.size());
    EXPECT_EQ(std::ranges::count(back, static_cast<std::byte>(i + 1)), static_cast<std::ptrdiff_t>(back.size()));
  }
  EXPECT_EQ(this->target->allocate(0).data(), nullptr);
}

TYPED_TEST_P(device_conformance, memory_that_is_not_there_is_an_error) {
  try {
    this->target->allocate(std::size_t{1} << 60);
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::out_of_memory);
  }
}

TYPED_TEST_P(device_conformance, launches_run_in_order) {
  constexpr std::size_t count = 37, bytes = count * sizeof(float);
  native_kernel kernel = TypeParam::kernel();
  const native_kernel* list[] = {&kernel, &kernel};
  auto library = this->target->load(list);
  auto twice = library->find(0, "twice"), add = library->find(1, "add");
  device_memory x = this->target->allocate(bytes), y = this->target->allocate(bytes), z = this->target->allocate(bytes);
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  this->target->upload(x.data(), values.data(), bytes);
  // The caller may reuse the memory immediately.
  std::ranges::fill(values, -5.0f);
  std::iota(values.begin(), values.end(), 1.0f);
  void* twice_buffers[] = {x.data(), y.data()};
  void* add_buffers[] = {y.data(), x.data(), z.data()};
  this->target->launch({twice, count, 1, 1, 1, 0, twice_buffers});
  this->target->launch({add, count, 1, 1, 1, 0, add_buffers});
  std::vector<float> result(count, -1.0f);
  this->target->download(result.data(), z.data(), bytes);
  this->target->synchronize();
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(result[i], 3 * values[i]) << i;
}

TYPED_TEST_P(device_conformance, missing_functions_and_damaged_objects_are_errors) {
  native_kernel kernel = TypeParam::kernel();
  const native_kernel* list[] = {&kernel};
  auto library = this->target->load(list);
  EXPECT_THROW(library->find(0, "no_such_function"), error);
  EXPECT_THROW(library->find(1, "twice"), error);
  kernel.object.resize(kernel.object.size() / 2);
  EXPECT_THROW(this->target->load(list), error);
}

TYPED_TEST_P(device_conformance, copies_and_zeros_stay_in_order) {
  // Several rounds of pieces of a staged copy, by two threads.
  constexpr std::size_t bytes = (37u << 20) + 13;
  device_memory x = this->target->allocate(bytes), y = this->target->allocate(bytes);
  std::vector<std::byte> data(bytes), back(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  auto stream = this->target->make_stream();
  this->target->upload(x.data(), data.data(), bytes, stream.get());
  std::vector<std::byte> original = data;
  // The host's memory may be reused.
  std::ranges::fill(data, std::byte{0xEE});
  this->target->copy(y.data(), x.data(), bytes, stream.get());
  this->target->fill_zero(x.data(), bytes - 1, stream.get());
  this->target->download(back.data(), y.data(), bytes, stream.get());
  EXPECT_EQ(back, original);
  this->target->download(back.data(), x.data(), bytes, stream.get());
  EXPECT_EQ(std::ranges::count(back, std::byte{0}), static_cast<std::ptrdiff_t>(bytes - 1));
  EXPECT_EQ(back.back(), original.back());
  this->target->copy(y.data(), x.data(), 0, stream.get());
  this->target->upload(y.data(), nullptr, 0);
  this->target->download(nullptr, y.data(), 0);
  this->target->synchronize(stream.get());
}

TYPED_TEST_P(device_conformance, events_order_streams_and_tell_time) {
  constexpr std::size_t count = 37, bytes = count * sizeof(float);
  native_kernel kernel = TypeParam::kernel();
  const native_kernel* list[] = {&kernel};
  auto library = this->target->load(list);
  auto twice = library->find(0, "twice");
  auto a = this->target->make_stream(), b = this->target->make_stream();
  auto begin = this->target->make_event(), end = this->target->make_event();
  device_memory x = this->target->allocate(bytes), y = this->target->allocate(bytes), z = this->target->allocate(bytes);
  std::vector<float> values(count, 3.0f), result(count);
  this->target->upload(x.data(), values.data(), bytes, a.get());
  void* first[] = {x.data(), y.data()};
  void* second[] = {y.data(), z.data()};
  begin->record(a.get());
  this->target->launch({twice, count, 1, 1, 1, 0, first, {}, a.get()});
  end->record(a.get());
  this->target->wait(b.get(), *end);
  this->target->launch({twice, count, 1, 1, 1, 0, second, {}, b.get()});
  this->target->check(b.get());
  this->target->download(result.data(), z.data(), bytes, b.get());
  EXPECT_EQ(result, std::vector<float>(count, 12.0f));
  end->synchronize();
  EXPECT_GE(end->milliseconds_since(*begin), 0.0);
  this->target->synchronize(a.get());
}

TYPED_TEST_P(device_conformance, its_own_stream_is_the_one_that_null_means) {
  native_kernel kernel = TypeParam::kernel();
  const native_kernel* list[] = {&kernel};
  auto library = this->target->load(list);
  auto twice = library->find(0, "twice");
  constexpr std::size_t count = 37, bytes = count * sizeof(float);
  auto own = this->target->own_stream();
  device_memory x = this->target->allocate(bytes), y = this->target->allocate(bytes), z = this->target->allocate(bytes);
  std::vector<float> values(count, 1.5f), result(count);
  this->target->upload(x.data(), values.data(), bytes);
  void* first[] = {x.data(), y.data()};
  void* second[] = {y.data(), z.data()};
  this->target->launch({twice, count, 1, 1, 1, 0, first, {}, own.get()});
  this->target->launch({twice, count, 1, 1, 1, 0, second, {}, nullptr});
  this->target->check(own.get());
  this->target->download(result.data(), z.data(), bytes, own.get());
  EXPECT_EQ(result, std::vector<float>(count, 6.0f));
  this->target->synchronize(own.get());
}

REGISTER_TYPED_TEST_SUITE_P(device_conformance, says_what_it_is, memory_is_aligned_and_its_own,
                            memory_that_is_not_there_is_an_error, launches_run_in_order,
                            missing_functions_and_damaged_objects_are_errors, copies_and_zeros_stay_in_order,
                            events_order_streams_and_tell_time, its_own_stream_is_the_one_that_null_means);

}  // namespace kiln::testing
