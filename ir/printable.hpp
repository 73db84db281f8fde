// Escapes untrusted text (names, labels, messages, file names) before it is shown. Models, files and servers choose
// their own names. Printed verbatim, such a name could move the cursor, change the window title, reverse the reading
// order or forge log lines.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

// Returns `text` as one line of valid UTF-8 without control characters. C0 and C1 controls, DEL, invisible and
// bidirectional format characters, and invalid bytes become \n, \t, \x1b, \u202e and so on. Everything else is
// unchanged.
std::string printable(std::string_view text);

// The same for multi-line text, such as disassembly and diagnostics: newlines and tabs are kept.
std::string printable_lines(std::string_view text);

// The same for file names: each escaped character becomes `_`.
std::string printable_name(std::string_view text);

}  // namespace kiln
