// Numbers of things in sentences.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace kiln::tools {

// "1 file", "2 files". `several` is the plural where it has no plain "s".
template <class Number>
std::string counted(Number n, std::string_view one, std::string_view several = {}) {
  if (n == 1) return fmt::format("{} {}", n, one);
  return several.empty() ? fmt::format("{} {}s", n, one) : fmt::format("{} {}", n, several);
}

}  // namespace kiln::tools
