// Finding drivers, and selecting devices by name.
#include <gmock/gmock.h>

#include "ir/error.hpp"
#include "runtime/gpu/generic_targets.hpp"
#include "runtime/gpu/properties.hpp"
#include "stand_in_driver.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

TEST(gpu_driver, what_is_not_there_is_explained) {
  gpu::driver_search none = gpu::find_driver(gpu::api::cuda, "/no/such/library.so");
  EXPECT_EQ(none.driver, nullptr);
  EXPECT_EQ(gpu::explain(none), "/no/such/library.so: not found");
  gpu::driver_search another = gpu::find_driver(gpu::api::hip, "libm.so.6");
  EXPECT_EQ(another.driver, nullptr);
  EXPECT_THAT(gpu::explain(another), HasSubstr("libm.so.6: lacks hipInit"));
  // A CUDA driver must not be accepted as a HIP driver.
  EXPECT_THAT(gpu::explain(gpu::find_driver(gpu::api::hip, library_path(stand_ins[2]))), HasSubstr("lacks hipInit"));
  for (gpu::api which : {gpu::api::cuda, gpu::api::hip}) {
    gpu::driver_search usual = gpu::find_driver(which);
    ASSERT_FALSE(usual.searched.empty());
    for (const gpu::search_result& r : usual.searched) EXPECT_FALSE(r.outcome.empty()) << r.library;
  }
}

class gpu_drivers : public on_stand_in {};
INSTANTIATE_TEST_SUITE_P(stand_in, gpu_drivers, ::testing::ValuesIn(stand_ins), name_of);

device_options options_of(const stand_in_kind& kind) {
  device_options options;
  options.threads = 1;
  (kind.api == gpu::api::cuda ? options.cuda_library : options.hip_library) = library_path(kind);
  (kind.api == gpu::api::cuda ? options.hip_library : options.cuda_library) = "/no/such/library.so";
  return options;
}

TEST_P(gpu_drivers, devices_by_name) {
  std::string prefix(gpu::name(GetParam().api));
  device_options options = options_of(GetParam());
  auto device = open_device(prefix + ":1", options);
  EXPECT_EQ(device->info().name, prefix + ":1");
  EXPECT_EQ(device->info().target, GetParam().target);
  EXPECT_EQ(device->info().description, "Stand-in 1");
  EXPECT_EQ(device->info().multiprocessors, GetParam().api == gpu::api::cuda ? 132u : 304u);
  EXPECT_FALSE(device->info().host_memory);
  auto refuse = [&](const std::string& name, error_kind kind) {
    try {
      open_device(name, options);
      ADD_FAILURE() << name;
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
    }
  };
  refuse(prefix + ":2", error_kind::no_device);
  refuse(prefix + ":", error_kind::usage);
  refuse(prefix + ":-1", error_kind::usage);
  refuse(prefix + ":1x", error_kind::usage);
  refuse(GetParam().api == gpu::api::cuda ? "hip:0" : "cuda:0", error_kind::no_driver);
  device_list list = find_devices(options);
  ASSERT_EQ(list.devices.size(), 3u);
  EXPECT_EQ(list.devices[0].name, "host");
  EXPECT_EQ(list.devices[2].name, prefix + ":1");
  EXPECT_EQ(list.searched.size(), 2u);
  control.set_device_count(0);
  EXPECT_EQ(find_devices(options).devices.size(), 1u);
  refuse(prefix + ":0", error_kind::no_device);
}

TEST_P(gpu_drivers, the_environment_hides_devices) {
  const std::string prefix(gpu::name(GetParam().api)),
      variable = GetParam().api == gpu::api::cuda ? "CUDA_VISIBLE_DEVICES" : "HIP_VISIBLE_DEVICES";
  const device_options options = options_of(GetParam());
  ::setenv(variable.c_str(), "1", 1);
  // The numbers of those that are left begin at 0.
  EXPECT_EQ(open_device(prefix + ":0", options)->info().description, "Stand-in 1");
  EXPECT_EQ(find_devices(options).devices.size(), 2u);
  try {
    open_device(prefix + ":1", options);
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::no_device);
    EXPECT_THAT(e.what(), HasSubstr(variable + "=1"));
  }
  ::setenv(variable.c_str(), "", 1);
  EXPECT_EQ(find_devices(options).devices.size(), 1u);
  ::setenv(variable.c_str(), "1,0", 1);
  EXPECT_EQ(open_device(prefix + ":1", options)->info().description, "Stand-in 0");
  ::unsetenv(variable.c_str());
}

TEST_P(gpu_drivers, machine_code_of_portable_text) {
  auto device = open_stand_in(GetParam());
  auto text = module_text();
  if (GetParam().api == gpu::api::hip) {
    EXPECT_EQ(device->to_machine_code(text), text);
    return;
  }
  std::string ptx = ".version 8.0\n.target sm_90a\n";
  std::vector<std::byte> object(reinterpret_cast<const std::byte*>(ptx.data()),
                                reinterpret_cast<const std::byte*>(ptx.data()) + ptx.size());
  object.insert(object.end(), text.begin(), text.end());
  EXPECT_EQ(device->to_machine_code(object), text);
  // The link is attempted again with the target that the text names.
  control.fail("cuLinkComplete", 1, 218);
  EXPECT_EQ(device->to_machine_code(object), text);
  control.fail("cuLinkComplete", 1, 218);
  control.fail("cuLinkComplete", 2, 218);
  EXPECT_THROW(device->to_machine_code(object), error);
}

TEST(gpu_driver, targets_that_run_on_a_device) {
  using gpu::api;
  EXPECT_TRUE(gpu::runs_on(api::cuda, "sm_90", "sm_90"));
  EXPECT_TRUE(gpu::runs_on(api::cuda, "sm_90", "sm_90a"));
  EXPECT_TRUE(gpu::runs_on(api::cuda, "sm_90", "sm_80"));
  EXPECT_FALSE(gpu::runs_on(api::cuda, "sm_80", "sm_90"));
  EXPECT_FALSE(gpu::runs_on(api::cuda, "sm_100", "sm_90a"));
  EXPECT_FALSE(gpu::runs_on(api::cuda, "sm_90", "gfx942"));
  EXPECT_TRUE(gpu::runs_on(api::hip, "gfx942", "gfx942"));
  EXPECT_TRUE(gpu::runs_on(api::hip, "gfx942", "gfx942:xnack-"));
  EXPECT_FALSE(gpu::runs_on(api::hip, "gfx942", "gfx950"));
  EXPECT_FALSE(gpu::runs_on(api::hip, "gfx942", ""));
  EXPECT_TRUE(gpu::runs_on(api::hip, "gfx942", "gfx9-4-generic"));
  EXPECT_FALSE(gpu::runs_on(api::hip, "gfx942", "gfx9-generic"));
  EXPECT_FALSE(gpu::runs_on(api::hip, "gfx9-4-generic", "gfx942"));
  EXPECT_FALSE(gpu::runs_on(api::hip, "gfx1299", ""));
}

TEST(gpu_driver, generic_targets_of_architectures) {
  for (auto [architecture, target] :
       std::initializer_list<std::pair<const char*, const char*>>{{"gfx900", "gfx9-generic"},
                                                                  {"gfx90c:xnack+", "gfx9-generic"},
                                                                  {"gfx906", "gfx9-generic"},
                                                                  {"gfx908", ""},
                                                                  {"gfx90a", ""},
                                                                  {"gfx940", "gfx9-4-generic"},
                                                                  {"gfx950", "gfx9-4-generic"},
                                                                  {"gfx1010", "gfx10-1-generic"},
                                                                  {"gfx1036", "gfx10-3-generic"},
                                                                  {"gfx1100", "gfx11-generic"},
                                                                  {"gfx1154", "gfx11-generic"},
                                                                  {"gfx1201", "gfx12-generic"},
                                                                  {"gfx1250", ""},
                                                                  {"gfx1299", ""},
                                                                  {"gfx11", ""},
                                                                  {"", ""},
                                                                  {"gfx11000", ""},
                                                                  {"gfx1151:xnack-", "gfx11-generic"}})
    EXPECT_EQ(gpu::generic_target(architecture), target) << architecture;
}

}  // namespace
}  // namespace kiln::testing
