#include "ir/container/sections.hpp"
#include "ir/container/stripped.hpp"
#include "ir/error.hpp"
#include "ir/json.hpp"

namespace kiln::container {
namespace {

using json = nlohmann::ordered_json;

json describe(const std::string& name, const shape& type) {
  json dims = json::array();
  for (const dim& d : type.dims) dims.push_back(d.is_static() ? json(d.value()) : json(d.str()));
  return {{"name", name}, {"type", std::string(kiln::name(type.type))}, {"dims", std::move(dims)}};
}

}  // namespace

std::uint32_t needed_version(const program& p) { return p.metadata.contains(stripped_weights_key) ? 2 : 1; }

std::string make_manifest(const program& p, const write_options& options) {
  json inputs = json::array(), outputs = json::array(), symbols = json::object(), metadata = json::object();
  for (value v : p.main().parameters()) inputs.push_back(describe(module::parameter_name(v), v.type()));
  for (std::size_t i = 0; i < p.main().outputs().size(); ++i)
    outputs.push_back(describe(p.main().output_names()[i], p.main().outputs()[i].type()));
  for (const auto& [name, range] : p.symbols) {
    json limits{{"min", range.min}};
    if (range.max != INT64_MAX) limits["max"] = range.max;
    if (!range.optimal.empty()) limits["optimal"] = range.optimal;
    symbols[name] = std::move(limits);
  }
  for (const auto& [key, value] : p.metadata) metadata[key] = value;
  json manifest{{"kiln_version", std::string(kiln_version())},
                {"format_version", needed_version(p)},
                {"dialect_version", options.dialect_version},
                {"inputs", std::move(inputs)},
                {"outputs", std::move(outputs)},
                {"symbols", std::move(symbols)},
                {"modules", p.modules().size()},
                {"kernels", p.kernels().size()},
                {"metadata", std::move(metadata)}};
  // Names come from models and may be invalid UTF-8. Replace bad bytes instead of failing.
  return manifest.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

void verify_manifest(std::string_view text) {
  try {
    if (parse_json(text).is_object()) return;
  } catch (const error& e) {
    throw error(error_kind::corrupted, std::string("the manifest is not a JSON object: ") + e.what());
  }
  throw error(error_kind::corrupted, "the manifest is not a JSON object");
}

}  // namespace kiln::container
