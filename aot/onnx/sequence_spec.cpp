#include <charconv>

#include "aot/onnx/import.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw error(error_kind::usage, "--sequence '" + std::string(text) + "': " + std::string(why) +
                                     "; write NAME=[2,3][2,5] with the dimensions of each element, or NAME=none");
}

}  // namespace

std::pair<std::string, sequence_spec> parse_sequence_spec(std::string_view text) {
  auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) refuse(text, "there is no NAME=");
  std::string name(text.substr(0, equals));
  std::string_view rest = text.substr(equals + 1);
  if (rest == "none") return {name, std::nullopt};
  std::vector<std::vector<std::int64_t>> elements;
  while (!rest.empty()) {
    auto end = rest.find(']');
    if (rest.front() != '[' || end == std::string_view::npos) refuse(text, "an element is not in brackets");
    std::vector<std::int64_t>& dims = elements.emplace_back();
    const char *at = rest.data() + 1, *last = rest.data() + end;
    while (at != last) {
      std::int64_t size = 0;
      auto [stop, code] = std::from_chars(at, last, size);
      if (code != std::errc{} || size < 0 || (stop != last && *stop != ',') || (stop != last && stop + 1 == last))
        refuse(text, "'" + std::string(at, last) + "' is no list of sizes");
      dims.push_back(size);
      at = stop == last ? stop : stop + 1;
    }
    rest.remove_prefix(end + 1);
  }
  return {name, std::move(elements)};
}

}  // namespace kiln
