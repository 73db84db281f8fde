#include "device_conformance.hpp"
#include "stand_in_driver.hpp"

namespace kiln::testing {

template <int Which>
struct gpu_traits {
  static std::unique_ptr<device> make() { return open_stand_in(stand_ins[Which]); }
  static native_kernel kernel() {
    native_kernel k;
    k.object = module_text();
    return k;
  }
  static const char* target() { return stand_ins[Which].target; }
};
using gpus = ::testing::Types<gpu_traits<0>, gpu_traits<1>, gpu_traits<2>>;
INSTANTIATE_TYPED_TEST_SUITE_P(gpu, device_conformance, gpus);

}  // namespace kiln::testing
