#include "tools/decoder_import.hpp"

#include <cstdint>
#include <utility>

#include "generation/decoder_ports.hpp"
#include "ir/error.hpp"

namespace kiln::tools {
namespace {

std::map<std::string, dim_range> past_dimensions(const program& imported) {
  std::map<std::string, dim_range> result;
  try {
    const decoder_ports ports = recognize_decoder(imported);
    const auto parameters = imported.main().parameters();
    for (const state_port& s : ports.states)
      if (s.input && s.axis)
        for (const std::string& symbol : parameters[*s.input].type().dims[*s.axis].symbols())
          result.emplace(symbol, dim_range{.min = 0, .max = INT64_MAX, .optimal = {}});
  } catch (const error&) {}  // it is no decoder
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

}  // namespace kiln::tools
