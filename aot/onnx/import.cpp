#include "aot/onnx/import.hpp"

#include <algorithm>
#include <unordered_map>

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "aot/onnx/bounded_dims.hpp"
#include "aot/onnx/declared_types.hpp"
#include "aot/onnx/graph.hpp"
#include "aot/onnx/import_assumptions.hpp"
#include "aot/onnx/input_values.hpp"
#include "aot/onnx/operator_versions.hpp"
#include "aot/onnx/sizes_of_data.hpp"
#include "ir/bind_shapes.hpp"
#include "ir/nearest_name.hpp"
#include "ir/printable.hpp"

namespace kiln {
namespace {

using namespace onnx_import;

// Most operators are supported from opset 6 on; the operator table has the exact versions.
constexpr std::int64_t oldest_opset = 1;

std::map<std::string, std::int64_t> opsets_of(const ::onnx::ModelProto& model) {
  constexpr int most_imports = 1024;  // a file's manifest lists them
  if (model.opset_import_size() > most_imports)
    throw error(error_kind::unsupported, "the model imports more than " + std::to_string(most_imports) + " opsets");
  std::map<std::string, std::int64_t> result;
  for (const auto& o : model.opset_import()) result[o.domain() == "ai.onnx" ? "" : o.domain()] = o.version();
  auto standard = result.find("");
  if (standard != result.end() && standard->second < oldest_opset)
    throw error(error_kind::unsupported, "the model uses opset " + std::to_string(standard->second) +
                                             "; only opsets from " + std::to_string(oldest_opset) +
                                             " on are supported");
  if (standard != result.end() && standard->second > newest_opset)
    spdlog::warn(
        "the model uses opset {}, newer than the newest supported one ({}); its operators are interpreted as those of "
        "opset {}",
        standard->second, newest_opset, newest_opset);
  if (result.empty()) throw error(error_kind::invalid_model, "the model has no opset_import");
  return result;
}

// Throws error{usage} if the model has no open dimension that `option` names.
void check_dimension(const import_state& state, const std::string& option, const std::string& name) {
  const auto& [meanings, symbol_names] = state.dimensions;
  bool used = symbol_names.contains(name);
  for (const auto& [original, meaning] : meanings) used |= original == name || dim::symbol(original).str() == name;
  if (used) return;
  std::string list;
  std::vector<std::string_view> known;
  for (const auto& [symbol, original] : symbol_names) {
    list += (list.empty() ? "'" : ", '") + original + "'";
    known.push_back(original);
  }
  throw error(error_kind::usage, option + " '" + name + "': the model has " +
                                     (list.empty() ? "no open dimensions" : "only " + list) +
                                     did_you_mean(name, known));
}

// Records the open symbols with their ranges. Every dimension in the options must exist in the model.
void record_symbols(import_state& state) {
  for (const auto& [name, spec] : state.options.dims) check_dimension(state, "--dim", name);
  for (const std::string& name : state.options.may_be_one) check_dimension(state, "--may-be-one", name);
  std::set<std::string> open;
  auto use = [&](const dim& d) {
    if (!d.is_static()) open.merge(d.symbols());
  };
  for (const module& m : state.result.modules())
    for (const instruction& i : m.instructions()) {
      for (const shape& s : i.outputs()) std::ranges::for_each(s.dims, use);
      // The attributes of a constant contain a hash of all of its bytes, which is expensive.
      if (i.op().is<constant>()) continue;
      for (const auto& [field, value] : i.op().attributes())
        if (const auto* dims = std::get_if<std::vector<dim>>(&value)) std::ranges::for_each(*dims, use);
    }
  for (const dim_guard& g : state.result.guards) use(g.a), use(g.b);
  for (const auto& symbol : open) {
    if (symbol.starts_with(count_prefix)) continue;
    bool is_value = symbol.starts_with(value_prefix);
    const std::string& name = is_value ? symbol : state.dimensions.symbol_names.at(symbol);
    auto spec = state.options.dims.find(name);
    if (spec == state.options.dims.end()) spec = state.options.dims.find(symbol);
    const auto* range = spec == state.options.dims.end() ? nullptr : std::get_if<dim_range>(&spec->second);
    auto least = state.known.facts.lower(dim::symbol(symbol)), most = state.known.facts.upper(dim::symbol(symbol));
    state.result.symbols[symbol] = range      ? *range
                                   : is_value ? dim_range{least.value_or(0), most.value_or(INT64_MAX), {}}
                                              : dim_range{std::min<std::int64_t>(least.value_or(1), 1), INT64_MAX, {}};
    // A sliding-window cache needs at least as many rows as its window (ops/group_query_attention.cpp).
    if (auto window = state.result.metadata.find("cache_window:" + symbol); window != state.result.metadata.end())
      state.result.symbols[symbol].min =
          std::max(state.result.symbols[symbol].min, std::int64_t{std::stoll(window->second)});
  }
}

void check_sequences(const import_options& options, const ::onnx::GraphProto& graph) {
  for (const auto& [name, spec] : options.sequences) {
    auto input = std::ranges::find(graph.input(), name, [](const auto& i) { return i.name(); });
    if (input == graph.input().end() || input->type().has_tensor_type())
      throw error(error_kind::usage,
                  "--sequence '" + name + "': the model has no such input that is a sequence or an optional");
  }
}

// Counts may be used only by shapes. Instructions that compute a count must stay until settle_bounded_dims replaces the
// symbols.
void erase_dead(import_state& state) {
  std::unordered_map<const instruction*, value> counts;
  for (const bounded_dim& c : state.bounded) counts.emplace(c.count.producer, c.count);
  for (module& m : state.result.modules()) {
    const std::vector<value> outputs = m.outputs();
    const std::vector<std::string> names = m.output_names();
    std::vector<value> kept = outputs;
    for (const instruction& i : m.instructions())
      if (auto count = counts.find(&i); count != counts.end()) kept.push_back(count->second);
    m.set_outputs(kept, std::vector<std::string>(kept.size()));
    m.erase_dead();
    m.set_outputs(outputs, names);
  }
  state.result.erase_unreachable_modules();
}

// Programs have no strings. An output of strings becomes indices into a list of strings, which is stored as metadata.
void record_texts(import_state& state, const std::vector<value>& outputs, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto* list = state.texts.of(outputs[i]);
    if (!list) continue;
    state.result.metadata["texts:" + names[i]] = nlohmann::json(*list).dump();
    spdlog::warn(
        "output '{}' is text; programs give i64 indices into the list that kiln inspect shows, kiln run writes the "
        "text",
        names[i]);
  }
}

// Sets `plain_inputs` to the inputs that could be imported without knowing their elements (check_values()).
program import_once(::onnx::ModelProto model, const std::string& what, import_state& state,
                    std::map<std::string, std::vector<dim>>& plain_inputs) {
  if (!model.has_graph()) throw error(error_kind::invalid_model, what + " has no graph");
  for (const auto& f : model.functions()) state.functions.emplace(key_of(f), &f);
  builder b(state.result.main(), state.known, state.budget);
  scope top(state, b, nullptr);
  auto& graph = *model.mutable_graph();
  read_dimensions(state, graph);
  check_given_inputs(state.options, graph);
  check_sequences(state.options, graph);
  top.add_inputs(graph);
  top.run(graph);
  report_wrong_declarations(top, graph);
  auto outputs = top.outputs(graph);
  std::vector<std::string> names;
  for (const auto& o : graph.output()) names.push_back(o.name());
  flatten_compounds(state, outputs, names);
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size())
    throw error(error_kind::invalid_model, what + " has two outputs with the same name");
  if (names.empty()) throw error(error_kind::invalid_model, what + " has no outputs");
  record_texts(state, outputs, names);
  state.result.main().set_outputs(std::move(outputs), std::move(names));
  mark_sizes_of_data(state);
  erase_dead(state);
  state.result.guards = state.known.guards;
  record_symbols(state);
  plain_inputs = check_values(state);
  settle_bounded_dims(state);
  for (const auto& [domain, version] : state.opsets)
    state.result.metadata["opset" + (domain.empty() ? "" : "." + domain)] = std::to_string(version);
  if (!model.producer_name().empty())
    state.result.metadata["producer"] =
        model.producer_name() + (model.producer_version().empty() ? "" : " " + model.producer_version());
  state.result.validate();
  return std::move(state.result);
}

// Each attempt consumes the parsed message; import_assumptions.hpp says when it starts again. Tensors stay in the
// mapped file.
program import_model(std::span<const std::byte> bytes, const std::shared_ptr<const mapped_file>& file,
                     const std::string& what, const std::filesystem::path& folder, const import_options& options) {
  const std::optional<std::string> detached = file ? detach_tensors(bytes) : std::nullopt;
  if (detached) bytes = std::as_bytes(std::span(*detached));
  import_assumptions assumed(options);
  std::optional<program> found;
  constexpr int most_attempts = 256;
  constexpr std::size_t bytes_of_node = 2048;  // parsing takes the time of a node
  const std::size_t most_work = 2 * options.max_nodes;
  std::size_t work = 0;
  for (int attempt = 1;; ++attempt) {
    ::onnx::ModelProto model = parse_model(bytes, what);
    import_state state{program{},         external_files(folder, file),
                       assumed.options(), import_budget(options.max_nodes),
                       opsets_of(model),  {}};
    assumed.begin(state);
    try {
      std::map<std::string, std::vector<dim>> decide_no_size;
      program imported = import_once(std::move(model), what, state, decide_no_size);
      if (!assumed.improve(decide_no_size)) return imported;
      found = std::move(imported);
    } catch (const error& e) {
      work += state.budget.work() + bytes.size() / bytes_of_node;
      if (attempt == most_attempts || work > most_work)
        throw error(error_kind::unsupported,
                    what + ": " + std::to_string(attempt) +
                        " assumptions about its sizes and branches do not suffice: " + e.what());
      if (!assumed.change(e, state)) return *std::move(found);
    }
  }
}

program import_safely(std::span<const std::byte> bytes, const std::shared_ptr<const mapped_file>& file,
                      const std::string& what, const std::filesystem::path& folder, const import_options& options) try {
  return import_model(bytes, file, what, folder, options);
} catch (const error& e) {
  throw error(e.kind(), printable(e.what()));  // names in the message come from the file
} catch (const std::bad_alloc&) {
  throw error(error_kind::invalid_model, printable(what + " needs more memory than is available"));
}

}  // namespace

program import_onnx(const std::filesystem::path& model, const import_options& options) {
  auto file = mapped_file::open(model, "model");
  auto folder =
      options.external_weights.empty() ? std::filesystem::absolute(model).parent_path() : options.external_weights;
  return import_safely(file->bytes(), file, "'" + model.string() + "'", folder, options);
}

program import_onnx(std::span<const std::byte> bytes, const import_options& options) {
  return import_safely(bytes, nullptr, "the model", options.external_weights, options);
}

}  // namespace kiln
