#include "generation/step_inputs.hpp"

#include <gmock/gmock.h>

#include "runtime/host_device.hpp"

namespace kiln::testing {
namespace {

using ::testing::ElementsAreArray;

using tensors = std::vector<std::vector<std::byte>>;

std::vector<std::byte> bytes(std::size_t count, int value) { return std::vector(count, static_cast<std::byte>(value)); }

class step_inputs_test : public ::testing::Test {
 protected:
  std::size_t upload(const tensors& all) {
    const std::size_t copied = inputs.upload(on, *stream, all);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_THAT(inputs[i], ElementsAreArray(all[i])) << i;
    return copied;
  }
  host_device on{1};
  std::unique_ptr<device_stream> stream = on.own_stream();
  step_inputs inputs;
};

TEST_F(step_inputs_test, only_what_changed_is_copied) {
  tensors all{bytes(8, 1), {}, bytes(40, 2)};
  upload(all);
  EXPECT_EQ(upload(all), 0u);
  all[2].resize(48, std::byte{2});
  EXPECT_EQ(upload(all), 8u);
  all[0] = bytes(8, 3);
  EXPECT_EQ(upload(all), 8u);
}

TEST_F(step_inputs_test, addresses_stay_while_a_tensor_has_room) {
  tensors all{bytes(8, 1), bytes(200, 2)};
  upload(all);
  const std::byte* at = inputs[1].data();
  all[1] = bytes(256, 3);
  upload(all);
  EXPECT_EQ(inputs[1].data(), at);
  all[1] = bytes(257, 4);
  upload(all);
  all[0] = bytes(4, 5);
  upload(all);
}

}  // namespace
}  // namespace kiln::testing
