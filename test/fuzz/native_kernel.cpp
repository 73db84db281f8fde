// A native kernel, as an entry or a code object holds it.
#include "ir/native_kernel.hpp"

#include "fuzz_target.hpp"
#include "ir/row_kernel.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const std::vector<std::byte> bytes = aligned_copy(input);
  if (is_row_kernel(bytes)) {
    const std::vector<std::byte> again = serialize(deserialize_row_kernel(bytes));
    require(serialize(deserialize_row_kernel(again)) == again, "a row kernel is written as it is read");
    return;
  }
  const std::vector<std::byte> again = serialize(deserialize_native_kernel(bytes));
  require(serialize(deserialize_native_kernel(again)) == again, "a native kernel is written as it is read");
}

}  // namespace kiln::fuzzing
