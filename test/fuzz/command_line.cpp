// Arguments with a syntax of their own: the first byte says of which option, the rest is the text.
#include "aot/onnx/import.hpp"
#include "fuzz_target.hpp"
#include "jit/remote/http_address.hpp"
#include "jit/remote/redis_address.hpp"
#include "tools/model_list.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  if (input.empty()) return;
  const auto text = as_text(input.subspan(1));
  switch (static_cast<char>(input[0])) {
    case 'd': require(!parse_dim_spec(text).first.empty(), "--dim has a name"); return;
    case 'v': require(!parse_value_spec(text).first.empty(), "--value has a name"); return;
    case 's': require(!parse_sequence_spec(text).first.empty(), "--sequence has a name"); return;
    case 'r':
      if (text.find("password-file") != std::string_view::npos) return;  // would read files of this machine
      parse_redis_url(text);
      return;
    case 'h': require(!is_http_url(text) || !parse_http_url(text).folder.empty(), "a URL has a folder"); return;
    case 'l': tools::read_model_list(as_file(input.subspan(1))); return;
    default: tools::split_words(text);
  }
}

}  // namespace kiln::fuzzing
