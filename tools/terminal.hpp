// The only place of the command line that writes to standard output, standard error or the log. Text from outside is
// made printable (ir/printable.hpp) here, argument by argument, so that no command has to think of it; test/house finds
// whatever writes past it. Failures to write are no errors here: main() looks at standard output once, at the end.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "ir/printable.hpp"

namespace kiln::tools {

// An argument as it may be shown: text made printable, numbers as they are.
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

// Text of several lines from outside, such as disassembly and compilers' diagnostics.
inline void print_lines(std::FILE* stream, std::string_view text) { write_to(stream, printable_lines(text)); }

// A process tells once why it ends. Whether the caller is the one who does; another thread may have been first.
bool claim_report();
// `kiln: KIND: MESSAGE`, as one line, to standard error and past its buffer. Where nobody can be told, the exit code
// tells.
void write_report(std::string_view kind, std::string_view message);
// For text of our own where no memory is left.
void write_constant(std::string_view text);

// In ASCII: what is not, controls included, is escaped; what is not UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::ordered_json& document);

// spdlog's messages to standard error as `kiln: LEVEL: MESSAGE`, each on one line.
void start_log(bool verbose, bool quiet);

}  // namespace kiln::tools
