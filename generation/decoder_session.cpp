#include "generation/decoder_session.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/container/native_signature.hpp"
#include "ir/ops/cache_update.hpp"
#include "session/cache_choice.hpp"

namespace kiln {
namespace {

void drop_next_ids(program& steps) {
  module& m = steps.main();
  std::vector<value> outputs = m.outputs();
  std::vector<std::string> names = m.output_names();
  const auto found = std::ranges::find(names, std::string(next_ids));
  if (found == names.end()) return;
  outputs.erase(outputs.begin() + (found - names.begin()));
  names.erase(found);
  m.set_outputs(std::move(outputs), std::move(names));
  m.erase_dead();
}

}  // namespace

void prepare_steps(program& steps, session_options& options) {
  if (options.device == "host") drop_next_ids(steps);  // the host chooses ids itself
  for (value v : steps.main().parameters())
    if (std::ranges::count(v.type().dims, dim::symbol(cache_room)))
      options.updated_inputs.push_back(module::parameter_name(v));
}

std::unique_ptr<session> open_decoder_session(const std::filesystem::path& file, session_options options) {
  std::optional<program> steps;
  if (options.specialization == specialization::off)
    steps = read_steps(file, consent_of(options.cache), weight_check::when_read);
  if (!steps) return std::make_unique<session>(file, std::move(options));
  prepare_steps(*steps, options);
  return std::make_unique<session>(std::move(*steps), file, std::move(options));
}

}  // namespace kiln
