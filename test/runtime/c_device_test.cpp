// Device memory and copies through the C interface, on the host. test/onnxruntime/gpu_test.py uses them on a GPU.
#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/kiln.h"
#include "runtime/kiln.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

TEST(c_device, memory_is_written_copied_and_read) {
  api::device device("host");
  const std::string text = "eight by", other = "nine and";
  const api::device::memory a = device.allocate(text.size()), b = device.allocate(text.size());
  ASSERT_NE(a.get(), nullptr);
  device.upload(a.get(), text.data(), text.size());
  device.copy(b.get(), a.get(), text.size());
  device.upload(a.get(), other.data(), other.size());
  std::string read(text.size(), ' ');
  device.download(read.data(), b.get(), read.size());
  EXPECT_EQ(read, text);
}

TEST(c_device, threads_share_a_device) {
  api::device device("host");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&device, t] {
      for (int i = 0; i < 200; ++i) {
        const api::device::memory m = device.allocate(sizeof t);
        int read = -1;
        device.upload(m.get(), &t, sizeof t);
        device.download(&read, m.get(), sizeof read);
        EXPECT_EQ(read, t);
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST(c_device, nothing_has_no_memory) {
  api::device device("host");
  EXPECT_EQ(device.allocate(0).get(), nullptr);
  EXPECT_EQ(kiln_device_free(device.get(), nullptr), KILN_OK);
  EXPECT_EQ(kiln_device_upload(device.get(), nullptr, nullptr, 0), KILN_OK);
}

TEST(c_device, wrong_uses_are_named) {
  kiln_device* device = nullptr;
  EXPECT_EQ(kiln_device_open("toaster", &device), KILN_USAGE);
  EXPECT_EQ(device, nullptr);
  EXPECT_THAT(kiln_last_error(), HasSubstr("toaster"));
  EXPECT_EQ(kiln_device_open(nullptr, &device), KILN_USAGE);
  ASSERT_EQ(kiln_device_open("host", &device), KILN_OK);
  int mine = 0;
  void* memory = nullptr;
  EXPECT_EQ(kiln_device_free(device, &mine), KILN_USAGE);
  EXPECT_THAT(kiln_last_error(), HasSubstr("not allocated by this device"));
  EXPECT_EQ(kiln_device_allocate(device, 4, nullptr), KILN_USAGE);
  EXPECT_EQ(kiln_device_allocate(nullptr, 4, &memory), KILN_USAGE);
  EXPECT_EQ(kiln_device_copy(device, nullptr, &mine, 4), KILN_USAGE);
  EXPECT_EQ(kiln_device_copy(nullptr, &mine, &mine, 4), KILN_USAGE);
  EXPECT_EQ(kiln_device_allocate(device, SIZE_MAX / 2, &memory), KILN_OUT_OF_MEMORY);
  EXPECT_EQ(memory, nullptr);
  kiln_device_close(device);
  kiln_device_close(nullptr);
}

TEST(c_device, kinds_that_do_not_exist_have_no_devices) {
  EXPECT_EQ(kiln_device_count("host"), 0u);
  EXPECT_EQ(kiln_device_count("toaster"), 0u);
  EXPECT_EQ(kiln_device_count(nullptr), 0u);
}

}  // namespace
}  // namespace kiln::testing
