// The only part of the command line that writes to standard output, standard error or the log. Every text argument is
// made printable here (ir/printable.hpp), so that commands need not do it for text from outside; test/house finds code
// that bypasses this. Write errors are ignored here: main() checks standard output once, at the end.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "ir/printable.hpp"

namespace kiln::tools {

// An argument in printable form: text is escaped, numbers stay as they are.
template <class T>
auto shown(const T& argument) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return printable(argument);
  } else {
    static_assert(std::is_arithmetic_v<T>, "only text and numbers are printed");
    return argument;
  }
}
template <class T>
using shown_type = decltype(shown(std::declval<const T&>()));

void write_to(std::FILE* stream, std::string_view text);

// To standard output.
template <class... T>
void print(fmt::format_string<shown_type<T>...> format, const T&... arguments) {
  write_to(stdout, fmt::format(format, shown(arguments)...));
}

// To standard error.
template <class... T>
void note(fmt::format_string<shown_type<T>...> format, const T&... arguments) {
  write_to(stderr, fmt::format(format, shown(arguments)...));
}

// Prints multi-line text from outside, such as disassembly and compiler diagnostics.
inline void print_lines(std::FILE* stream, std::string_view text) { write_to(stream, printable_lines(text)); }

// A process reports only once why it ends. Returns true for the first caller, who must report; other threads get false.
bool claim_report();
// Writes `kiln: KIND: MESSAGE` as one line to standard error, without buffering. Write errors are ignored, because the
// exit code also says what happened.
void write_report(std::string_view kind, std::string_view message);
// Writes text to standard error without allocating memory.
void write_constant(std::string_view text);

// JSON in ASCII: other characters and control characters are escaped, and invalid UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::ordered_json& document);

// Makes spdlog write each message to standard error as one line `kiln: LEVEL: MESSAGE`.
void start_log(bool verbose, bool quiet);

}  // namespace kiln::tools
