// Devices without a row in the table of targets: which code they get.
#include "jit/device_targets.hpp"

#include <gmock/gmock.h>

#include "ir/error.hpp"
#include "jit/kernel_keys.hpp"
#include "runtime/gpu/generic_targets.hpp"

namespace kiln {
namespace {

using ::testing::HasSubstr;

device_info gpu_of(const char* family, const char* architecture) {
  device_info info;
  info.name = "gpu:0", info.family = family, info.host_memory = false;
  info.architecture = architecture;
  info.target = info.architecture.substr(0, info.architecture.find(':'));
  return info;
}

TEST(device_targets, a_device_with_a_row_gets_its_own_code) {
  for (const target_row& row : targets()) {
    if (row.family == target_family::cpu || row.name.ends_with("generic")) continue;
    device_target found = target_of(gpu_of(std::string(enum_name(row.family)).c_str(), row.name.c_str()));
    EXPECT_EQ(found.row.name, row.name);
    EXPECT_EQ(found.note, "") << row.name;
    // Only AMD has generic targets.
    EXPECT_EQ(found.family ? found.family->name : "", gpu::generic_target(row.name)) << row.name;
  }
}

TEST(device_targets, a_device_without_a_row_gets_the_nearest_code) {
  for (auto [family, architecture, target] : std::initializer_list<std::array<const char*, 3>>{
           {"amdgpu", "gfx1154:xnack-", "gfx11-generic"},
           {"amdgpu", "gfx1037", "gfx10-3-generic"},
           {"amdgpu", "gfx941", "gfx9-4-generic"},
           {"amdgpu", "gfx1209", "gfx12-generic"},
           {"nvidia", "sm_88", "sm_87"},
           {"nvidia", "sm_99", "sm_89"},  // the code of sm_90 runs on sm_90 only
           {"nvidia", "sm_101", "sm_100"},
           {"nvidia", "sm_130", "sm_121"}}) {
    device_target found = target_of(gpu_of(family, architecture));
    EXPECT_EQ(found.row.name, target) << architecture;
    EXPECT_THAT(found.note, HasSubstr(std::string("is ") + architecture)) << architecture;
    EXPECT_THAT(found.note, HasSubstr(std::string("code for ") + target)) << architecture;
    EXPECT_FALSE(found.family);
  }
}

TEST(device_targets, a_device_without_code_is_refused_in_one_line) {
  for (auto [family, architecture] : std::initializer_list<std::pair<const char*, const char*>>{
           {"amdgpu", "gfx1299"}, {"amdgpu", "gfx803"}, {"nvidia", "sm_60"}})
    try {
      target_of(gpu_of(family, architecture));
      ADD_FAILURE() << architecture;
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), error_kind::unsupported);
      EXPECT_THAT(e.what(), HasSubstr(architecture));
      EXPECT_THAT(e.what(), Not(HasSubstr("\n")));
    }
}

TEST(device_targets, keys_of_rows_differ) {
  for (const target_row& a : targets())
    for (const target_row& b : targets()) {
      if (a.name == b.name) continue;
      EXPECT_NE(make_kernel_key("ab", {}, {}, {}, a).hash(), make_kernel_key("ab", {}, {}, {}, b).hash())
          << a.name << " " << b.name;
    }
}

}  // namespace
}  // namespace kiln
