// A tuning record, which is what hints are lists of.
#include "jit/tuning/tuning_record.hpp"

#include "fuzz_target.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const tuning_record record = parse_record(as_text(input));
  const std::string text = to_text(record);
  require(to_text(parse_record(text)) == text, "a record is written as it is read");
  require(!to_text(merge(record, record)).empty(), "a record merges with itself");
}

}  // namespace kiln::fuzzing
