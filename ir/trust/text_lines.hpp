// Words, numbers and signatures in the text files of this folder. Internal to ir/trust.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "ir/trust/keys.hpp"

namespace kiln {

// The next word of a line, which is shortened.
std::string_view take_word(std::string_view& line);

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "signature HEX HEX\n": key and Ed25519 signature of `domain` and `text`.
std::string signature_line(std::string_view domain, const std::string& text, const signing_key& key);
// The key of such a line (without its end), or nullopt if it is not one, or does not sign these.
std::optional<public_key> signer_of_line(std::string_view domain, const std::string& text, std::string_view line);

}  // namespace kiln
