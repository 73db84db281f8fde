#include "ir/trust/text_lines.hpp"

#include <algorithm>
#include <cstring>

namespace kiln {
namespace {

constexpr std::string_view label = "signature";

}  // namespace

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

std::string signature_line(std::string_view domain, const std::string& text, const signing_key& key) {
  const std::string message = std::string(domain) + text;
  const signature_block block = key.sign(std::as_bytes(std::span(message)));
  std::string line = std::string(label) + " " + to_hex(key.public_half()) + " ";
  for (std::size_t at : {signature_bytes - 64, signature_bytes - 32}) {
    public_key half{};
    std::memcpy(half.data(), block.data() + at, half.size());
    line += to_hex(half);
  }
  return line + "\n";
}

std::optional<public_key> signer_of_line(std::string_view domain, const std::string& text, std::string_view line) {
  const bool labelled = take_word(line) == label;
  const auto key = key_of_hex(take_word(line));
  const std::string_view digits = take_word(line);
  if (!labelled || !key || digits.size() != 128 || !take_word(line).empty()) return std::nullopt;
  const auto first = key_of_hex(digits.substr(0, 64)), second = key_of_hex(digits.substr(64));
  if (!first || !second) return std::nullopt;
  signature_block block{};
  auto out = block.begin();
  for (std::span<const std::uint8_t> part :
       {std::span<const std::uint8_t>(signature_magic), std::span<const std::uint8_t>(*key),
        std::span<const std::uint8_t>(*first), std::span<const std::uint8_t>(*second)})
    out = std::ranges::transform(part, out, [](std::uint8_t b) { return static_cast<std::byte>(b); }).out;
  const std::string message = std::string(domain) + text;
  return signer_of_message(block, std::as_bytes(std::span(message)));
}

}  // namespace kiln
