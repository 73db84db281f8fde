// Text from outside (names, labels, messages, file names) as text that is safe to show. Models, files and servers
// choose their own names; shown as they are, they could move the cursor, retitle the window, reverse the reading order
// or break a log into lines of their own.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

// `text` as one line of valid UTF-8 without control characters: C0 and C1 controls, DEL, invisible and bidirectional
// format characters and bytes that are not UTF-8 become \n, \t, \x1b, \u202e and so on. Everything else stays.
std::string printable(std::string_view text);

// The same for text that has lines, such as disassembly and diagnostics: newlines and tabs stay.
std::string printable_lines(std::string_view text);

// The same for names of files: what printable() escapes becomes `_`.
std::string printable_name(std::string_view text);

}  // namespace kiln
