// The section `manifest`: any JSON within the limits of ir/json.hpp.
#include "fuzz_target.hpp"
#include "ir/container/sections.hpp"
#include "ir/json.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const std::string_view text = as_text(input);
  container::verify_manifest(text);
  const std::string first = parse_json(text).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  require(parse_json(first).dump() == first, "a document is read as it is written");
}

}  // namespace kiln::fuzzing
