// config.json, generation_config.json and genai_config.json, which `kiln generate` reads beside a model.
#include "tools/generation_configuration.hpp"

#include "fuzz_target.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  tools::generation_configuration said;
  read_generation_configuration(as_text(input), said);
  tools::generation_configuration twice = said;
  read_generation_configuration(as_text(input), twice);
  require(twice == said, "a configuration that is read twice says the same");
  require(said.decoder.find('\0') == std::string::npos, "the name of a file has no zero byte");
}

}  // namespace kiln::fuzzing
