// Text inside the pages that Kiln writes (perf --html, inspect --html). Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "ir/printable.hpp"

namespace kiln::tools {

// One line of text of a model or a file, for HTML and SVG: nothing in it is markup or a control character.
inline std::string html_text(std::string_view text) {
  std::string result;
  for (char c : printable(text)) switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  return result;
}

}  // namespace kiln::tools
