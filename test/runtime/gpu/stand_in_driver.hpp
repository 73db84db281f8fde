// Helpers for tests that use the stand-in drivers.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "hip_stand_in/stand_in.hpp"
#include "programs.hpp"
#include "runtime/devices.hpp"
#include "runtime/gpu_device.hpp"

namespace kiln::testing {

struct stand_in_kind {
  // File name of the library.
  const char* name;
  gpu::api api;
  const char* target;                                                    // of its devices
  const char *allocate, *free, *synchronize, *launch, *upload, *encode;  // its names of functions
};
inline constexpr stand_in_kind stand_ins[] = {
    {"hip", gpu::api::hip, "gfx942", "hipMallocFromPoolAsync", "hipFreeAsync", "hipStreamSynchronize",
     "hipModuleLaunchKernel", "hipMemcpyHtoDAsync", ""},
    {"hip5", gpu::api::hip, "gfx90a", "hipMalloc", "hipFree", "hipStreamSynchronize", "hipModuleLaunchKernel",
     "hipMemcpyHtoDAsync", ""},
    {"cuda", gpu::api::cuda, "sm_90", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuStreamSynchronize",
     "cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuTensorMapEncodeTiled"},
};

inline void PrintTo(const stand_in_kind& kind, std::ostream* out) { *out << kind.name; }

inline std::string library_path(const stand_in_kind& kind) {
  return std::string(KILN_STAND_INS) + "/libkiln_stand_in_" + kind.name + ".so";
}

inline const stand_in::control& control_of(const stand_in_kind& kind) {
  void* library = ::dlopen(library_path(kind).c_str(), RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<stand_in::control_function>(::dlsym(library, stand_in::control_symbol))();
}

inline std::vector<std::byte> module_text(const std::string& extra = {}) {
  std::string text =
      std::string(stand_in::module_first_line) +
      "add\ntwice\nexponential\nsum_parts\nsum_total\nreverse\nreverse_shared_f32_depth_last\nmultiply\nplus_"
      "minus\nbelow_limit\nadd_iteration\nadd_counter\ntwice_mapped\nfault\nhang\n" +
      extra + stand_in::module_last_line;
  std::vector<std::byte> bytes(text.size() + 1);
  std::memcpy(bytes.data(), text.c_str(), bytes.size());
  return bytes;
}

inline std::unique_ptr<gpu_device> open_stand_in(const stand_in_kind& kind, int ordinal = 0) {
  gpu::driver_search search = gpu::find_driver(kind.api, library_path(kind));
  if (!search.driver) throw error(error_kind::no_driver, gpu::explain(search));
  return std::make_unique<gpu_device>(search.driver, ordinal);
}

// A fixture for one of the stand-ins. At the end of each test, no object may be left.
class on_stand_in : public ::testing::TestWithParam<stand_in_kind> {
 protected:
  on_stand_in() {
    control.reset();
    flavour = {[] { return module_text(); }, GetParam().target};
  }
  ~on_stand_in() override {
    if (!forget_) {
      EXPECT_EQ(control.live(), 0u) << control.live_names();
    }
    EXPECT_EQ(control.late_uses(), 0u);
    control.reset();
    if (forget_) control.abandon();
    flavour = {};
  }
  // Set if the test leaks objects on purpose.
  bool forget_ = false;
  const stand_in::control& control = control_of(GetParam());
};
inline std::string name_of(const ::testing::TestParamInfo<stand_in_kind>& info) { return info.param.name; }

// A program with everything that a plan can contain: packed weights, a sum, control flow, and an output that is an
// input.
inline program rich_program() {
  program p;
  module& m = p.main();
  module& body = p.add_module("body");
  {
    value i = body.add_parameter("i", count_type), go = body.add_parameter("go", flag_type),
          x = body.add_parameter("x", vector_type);
    body.set_outputs({go, add_iteration(p, body, i, twice(p, body, x))}, {"go", "x"});
  }
  module& then = p.add_module("then");
  then.set_outputs({exponential(p, then, then.add_parameter("x", vector_type))}, {"x"});
  module& other = p.add_module("else");
  other.set_outputs({other.add_parameter("x", vector_type)}, {"x"});
  value x = m.add_parameter("x", vector_type), w = m.add_constant(vector_literal(ramp(0.5f, 0.001f))),
        c = m.add_constant(vector_literal(ramp(1.0f)));
  value y = add(p, m, multiply_packed(p, m, x, w), c);
  y = m.add(loop{1, -1},
            {m.add_constant(literal::of<std::int64_t>(count_type, {3})),
             m.add_constant(literal::of<std::uint8_t>(flag_type, {1})), y},
            {&body});
  y = m.add(if_else{}, {below_limit(p, m, y), y}, {&then, &other});
  m.set_outputs({y, sum(p, m, y), x}, {"y", "sum", "x"});
  return p;
}

// A straight-line program, whose runs consist only of launches.
inline program plain_program(float first = 0.5f) {
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", vector_type), w = m.add_constant(vector_literal(ramp(first, 0.25f))),
        c = m.add_constant(vector_literal(ramp(first + 1)));
  value y = add(p, m, multiply_packed(p, m, x, w), c);
  m.set_outputs({twice(p, m, y), sum(p, m, y)}, {"y", "sum"});
  return p;
}
inline std::vector<float> plain_result(const std::vector<float>& x, float first = 0.5f) {
  std::vector<float> w = ramp(first, 0.25f), c = ramp(first + 1), y(n);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * (x[i] * w[n - 1 - i] + c[i]);
  return y;
}

}  // namespace kiln::testing
