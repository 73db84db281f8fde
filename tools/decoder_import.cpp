#include "tools/decoder_import.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "generation/decoder_ports.hpp"
#include "ir/error.hpp"

namespace kiln::tools {
namespace {

std::optional<decoder_ports> ports_of(const program& imported) {
  try {
    return recognize_decoder(imported);
  } catch (const error&) {
    return std::nullopt;  // it is no decoder
  }
}

std::map<std::string, dim_range> past_dimensions(const program& imported) {
  std::map<std::string, dim_range> result;
  const auto ports = ports_of(imported);
  if (!ports) return result;
  const auto parameters = imported.main().parameters();
  for (const state_port& s : ports->states)
    if (s.input && s.axis)
      for (const std::string& symbol : parameters[*s.input].type().dims[*s.axis].symbols())
        result.emplace(symbol, dim_range{.min = 0, .max = INT64_MAX, .optimal = {}});
  return result;
}

}  // namespace

// The dimensions are known only after an import, so there are two.
program import_with_empty_past(const std::filesystem::path& file, const import_options& options) {
  program imported = import_onnx(file, options);
  import_options again = options;
  for (auto& [symbol, range] : past_dimensions(imported)) again.dims.emplace(symbol, range);
  if (again.dims.size() == options.dims.size()) return imported;
  try {
    return import_onnx(file, again);
  } catch (const error&) {
    return imported;  // it needs a past
  }
}

void ask_for_steps(const program& imported, compile_options& options, std::optional<program>& steps) {
  const auto ports = ports_of(imported);
  if (!ports) return;
  const auto parameters = imported.main().parameters();
  const auto& names = imported.main().output_names();
  for (const state_port& s : ports->states)
    if (s.input && s.output && s.axis)
      options.caches.push_back({module::parameter_name(parameters[*s.input]), names[*s.output], *s.axis});
  options.logits = names[ports->logits];
  options.ids = module::parameter_name(parameters[ports->tokens]);
  options.steps = &steps;
}

}  // namespace kiln::tools
