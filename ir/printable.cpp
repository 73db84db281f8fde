#include "ir/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace kiln {
namespace {

struct code_range {
  char32_t first, last;
};

// Controls (category Cc), and those format characters (Cf) and separators that affect the layout of the surrounding
// text.
constexpr std::array hidden{
    code_range{0x00, 0x1f},     code_range{0x7f, 0x9f},     code_range{0xad, 0xad},       code_range{0x61c, 0x61c},
    code_range{0x180e, 0x180e}, code_range{0x200b, 0x200f}, code_range{0x2028, 0x202e},   code_range{0x2060, 0x206f},
    code_range{0xfeff, 0xfeff}, code_range{0xfff9, 0xfffb}, code_range{0x1d173, 0x1d17a}, code_range{0xe0000, 0xe0fff},
};

bool is_hidden(char32_t code) {
  return std::ranges::any_of(hidden, [&](const code_range& r) { return r.first <= code && code <= r.last; });
}

struct decoded {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: invalid UTF-8
};

// Decodes the first character of a non-empty text. Rejects overlong forms, surrogates and code points beyond U+10FFFF.
decoded decode(std::string_view text) {
  struct form {
    std::uint8_t mask, lead;
    char32_t least;
  };
  constexpr std::array<form, 4> forms{
      {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}}};
  const auto first = static_cast<std::uint8_t>(text[0]);
  for (std::size_t extra = 0; extra < forms.size(); ++extra) {
    const form& f = forms[extra];
    if ((first & f.mask) != f.lead) continue;
    if (text.size() <= extra) return {};
    char32_t code = first & static_cast<std::uint8_t>(~f.mask);
    for (std::size_t i = 1; i <= extra; ++i) {
      const auto next = static_cast<std::uint8_t>(text[i]);
      if ((next & 0xc0) != 0x80) return {};
      code = code << 6 | (next & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < f.least || code > 0x10ffff || surrogate ? decoded{} : decoded{code, extra + 1};
  }
  return {};
}

void append_escape(std::string& to, char32_t code) {
  auto out = std::back_inserter(to);
  if (code == '\n') to += "\\n";
  else if (code == '\r') to += "\\r";
  else if (code == '\t') to += "\\t";
  else if (code < 0x80) fmt::format_to(out, "\\x{:02x}", static_cast<std::uint32_t>(code));
  else if (code < 0x10000) fmt::format_to(out, "\\u{:04x}", static_cast<std::uint32_t>(code));
  else fmt::format_to(out, "\\U{:08x}", static_cast<std::uint32_t>(code));
}

void append_escaped_byte(std::string& to, char byte) {
  fmt::format_to(std::back_inserter(to), "\\x{:02x}", static_cast<std::uint8_t>(byte));
}

// Copies `text`, but calls hide(result, character) for each hidden character and spoil(result, byte) for each invalid
// byte.
template <class Hide, class Spoil>
std::string rewritten(std::string_view text, Hide hide, Spoil spoil) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const decoded next = decode(text);
    const std::size_t bytes = std::max<std::size_t>(next.bytes, 1);
    if (next.bytes == 0) spoil(result, text[0]);
    else if (is_hidden(next.code)) hide(result, next.code);
    else result += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return rewritten(text, append_escape, append_escaped_byte); }

std::string printable_lines(std::string_view text) {
  auto hide = [](std::string& to, char32_t code) {
    if (code == '\n' || code == '\t') to += static_cast<char>(code);
    else append_escape(to, code);
  };
  return rewritten(text, hide, append_escaped_byte);
}

std::string printable_name(std::string_view text) {
  auto replace = [](std::string& to, auto) { to += '_'; };
  return rewritten(text, replace, replace);
}

}  // namespace kiln
