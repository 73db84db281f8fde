#include "ir/json.hpp"

#include <fmt/format.h>

#include <vector>

#include "ir/error.hpp"

namespace kiln {
namespace {

[[noreturn]] void beyond(std::string_view what, std::size_t limit) {
  throw error(error_kind::corrupted, fmt::format("JSON with more than {} {}", limit, what));
}

// Counts brackets, commas and colons outside of strings. The counts are exact for valid JSON; the parser reports any
// other text.
void check_limits(std::string_view text, const json_limits& limits) {
  if (text.size() > limits.bytes) beyond("bytes", limits.bytes);
  std::vector<std::size_t> members{0};  // per open array or object; the top level comes first
  std::size_t values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
      continue;
    }
    switch (c) {
      case '"': in_string = true; break;
      case '[':
      case '{':
        members.push_back(0);
        ++values;
        if (members.size() - 1 > limits.depth) beyond("levels", limits.depth);
        break;
      case ']':
      case '}':
        if (members.size() > 1) members.pop_back();
        break;
      case ',': ++values; break;
      case ':':
        if (++members.back() > limits.members) beyond("members in one object", limits.members);
        break;
      default: break;
    }
    if (values > limits.values) beyond("values", limits.values);
  }
}

}  // namespace

std::string problem_of(const nlohmann::json::exception& e) {
  if (const auto* parse = dynamic_cast<const nlohmann::json::parse_error*>(&e))
    return fmt::format("it is not JSON from byte {} on", parse->byte);
  // Other messages begin with the exception's name in brackets.
  const std::string_view text = e.what();
  const std::size_t name_end = text.find("] ");
  return std::string(name_end == std::string_view::npos ? text : text.substr(name_end + 2));
}

nlohmann::ordered_json parse_json(std::string_view text, const json_limits& limits) {
  check_limits(text, limits);
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw error(error_kind::corrupted, problem_of(e));
  }
}

}  // namespace kiln
