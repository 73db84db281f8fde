// What the configuration of a language model says: config.json and generation_config.json of transformers, and
// genai_config.json of onnxruntime-genai. Somebody else wrote them: unknown keys and values of other types are ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::tools {

struct generation_configuration {
  std::vector<std::int64_t> stop_ids;
  std::optional<std::int64_t> context, decoder_start;
  std::string decoder;  // file name; empty: none is named

  friend bool operator==(const generation_configuration&, const generation_configuration&) = default;
};

// Adds what the text says; of what several files say, the last counts. Throws error{corrupted} for a text that is no
// JSON object or exceeds the limits of JSON.
void read_generation_configuration(std::string_view text, generation_configuration& into);

}  // namespace kiln::tools
