// A relocatable object, loaded but not called.
#include "fuzz_target.hpp"
#include "ir/error.hpp"
#include "runtime/host_symbols.hpp"
#include "runtime/object_loader.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const std::vector<std::byte> bytes = aligned_copy(input);
  const std::vector<std::span<const std::byte>> objects{bytes, bytes};
  const code_image image(objects, find_host_symbol);
  for (std::size_t i = 0; i < objects.size(); ++i)
    for (const char* symbol : {"dot_0_streaming_dot", "map_relu_0_map", "softmax_0_softmax"}) {
      try {
        const auto* found = static_cast<const std::byte*>(image.find(i, symbol));
        require(found >= image.mapping().data() && found < image.mapping().data() + image.mapping().size(),
                "a function lies in the mapping");
      } catch (const error& e) {
        require(e.kind() == error_kind::corrupted, e.what());
      }
    }
}

}  // namespace kiln::fuzzing
