// The section `tuning_hints`.
#include "jit/tuning/tuning_hints.hpp"

#include "fuzz_target.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const std::string text = hints_text(parse_hints(as_text(input)));
  require(hints_text(parse_hints(text)) == text, "hints are written as they are read");
}

}  // namespace kiln::fuzzing
