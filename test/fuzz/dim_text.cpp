// The text of a symbolic dimension.
#include "fuzz_target.hpp"
#include "ir/dim.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const dim read = dim::parse(as_text(input));
  require(dim::parse(read.str()).str() == read.str(), "a dimension's text is read as it is written");
}

}  // namespace kiln::fuzzing
