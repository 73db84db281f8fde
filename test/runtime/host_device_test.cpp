#include "runtime/host_device.hpp"
#include "device_conformance.hpp"
#include "objects.hpp"

namespace kiln::testing {

struct host_traits {
  static std::unique_ptr<device> make() { return std::make_unique<host_device>(2); }
  static native_kernel kernel() {
    native_kernel k;
    k.object = read_object("tensors");
    return k;
  }
  static const char* target() { return objects_target; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(host, device_conformance, host_traits);

TEST(host_device, knows_its_targets) {
  host_device device(1);
  EXPECT_TRUE(device.runs("native"));
  EXPECT_FALSE(device.runs("gfx942"));
  EXPECT_FALSE(device.runs("sm_90"));
  EXPECT_FALSE(device.runs("aarch64-neon"));
  EXPECT_FALSE(device.runs(""));
#if defined(__x86_64__)
  EXPECT_EQ(device.runs("x86-64-v4"), __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"));
  EXPECT_FALSE(device.runs("armv8-a"));
#elif defined(__aarch64__)
  EXPECT_TRUE(device.runs("armv8-a"));
  EXPECT_FALSE(device.runs("x86-64-v2"));
#endif
}

}  // namespace kiln::testing
