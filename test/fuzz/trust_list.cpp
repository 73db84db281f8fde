// Lists of keys, roots of trust, signatures of files.
#include "ir/trust/trust_list.hpp"

#include "fuzz_target.hpp"
#include "ir/error.hpp"
#include "ir/trust/signed_file.hpp"
#include "ir/trust/trusted_keys.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const std::string text(as_text(input));
  if (text.starts_with("kiln-signature-1")) {
    require(read_statement(text, "input").statement.name.find('\n') == std::string::npos, "a name is one line");
    return;
  }
  if (is_root(text)) {
    const std::string first = text_of(read_root(text, "input"));
    require(text_of(read_root(first, "input")) == first, "a root is written as it is read");
  }
  trusted_keys::of_text(text, "input");
}

}  // namespace kiln::fuzzing
