#include "tools/opened_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "ir/invalid_shape.hpp"
#include "ir/json.hpp"
#include "ir/open_dimensions.hpp"
#include "ir/size_stages.hpp"
#include "runtime/graph/graph_usage.hpp"
#include "tools/npy.hpp"
#include "tools/random_inputs.hpp"
#include "tools/shape_option.hpp"
#include "tools/supplied_tensors.hpp"
#include "tools/tuning_report.hpp"

namespace kiln::tools {
namespace {

std::map<std::string, literal> read_inputs(const program& p, const std::vector<std::string>& texts) {
  std::map<std::string, literal> result;
  for (const std::string& text : texts) {
    auto [name, file] = split_assignment(text, "--input");
    const element_type type = find_input(p, name).type().type;
    if (!result.emplace(name, as_type(read_npy(file), type)).second)
      throw error(error_kind::usage, fmt::format("input '{}' is given twice", name));
  }
  return result;
}

// Of --fill, by the name of the input.
std::map<std::string, double> read_fills(const program& p, const model_options& options) {
  std::map<std::string, double> result;
  for (const std::string& text : options.fills) {
    const auto [name, digits] = split_assignment(text, "--fill");
    const element_type type = find_input(p, name).type().type;
    double number = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    // Whole numbers up to this one are exact as doubles.
    constexpr double largest = 9007199254740992;
    const bool fits = is_float(type) || (std::trunc(number) == number && std::abs(number) <= largest);
    if (code != std::errc{} || end != digits.data() + digits.size() || !fits)
      throw error(error_kind::usage,
                  fmt::format("--fill {}: '{}' is not a number of type {}", text, digits, kiln::name(type)));
    if (!result.emplace(name, number).second)
      throw error(error_kind::usage, fmt::format("input '{}' is given twice", name));
  }
  return result;
}

// The sizes of the inputs and those of --shape and --dim, which may give what the inputs leave open.
dim_bindings sizes_of(const program& p, const std::map<std::string, literal>& given, const model_options& options) {
  const dim_bindings told = parse_bindings(options.dims);
  require_known_dimensions(p, told);
  std::vector<given_shape> shapes = given_shapes(p, options.shapes);
  for (value v : p.main().parameters())
    if (auto found = given.find(module::parameter_name(v)); found != given.end())
      shapes.push_back({found->first, v.type(), found->second.type()});
  dim_bindings sizes = bind_shapes(shapes, told);
  for (const auto& [name, data] : given) add_sizes(sizes, bind_values(p.symbols, name, data), name);
  return sizes;
}

const char* way_of(const graph_decision& d) { return !d.replay ? "eager" : d.branches ? "branches" : "chain"; }

session_options observed(session_options options, session_view& view) {
  options.observer = [&view](const session_event& event) { view.show(event); };
  return options;
}

// The file, with the weights of --weights where they are given.
session open_session(const model_options& options, session_view& view) {
  session_options opening = observed(session_options_of(options), view);
  const std::filesystem::path file = options.file;
  if (options.weights.model.empty()) return {file, std::move(opening)};
  const stripped_plan plan = read_stripped(options.file, options.weights.sources);
  return {compile_like(plan, options.file, options.weights.model).result, file, std::move(opening)};
}

// The texts that the elements of an output stand for; nullopt for an output of numbers. Throws error{corrupted}.
std::optional<std::vector<std::string>> texts_of(const program& p, const std::string& output) {
  const auto found = p.metadata.find("texts:" + output);
  if (found == p.metadata.end()) return std::nullopt;
  const nlohmann::ordered_json list = parse_json(found->second);
  if (!list.is_array()) return std::nullopt;
  std::vector<std::string> texts;
  for (const auto& text : list) {
    if (!text.is_string()) return std::nullopt;
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

std::map<std::string, literal> named(const module& main, const std::vector<literal>& inputs) {
  std::map<std::string, literal> result;
  const auto parameters = main.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) result.emplace(module::parameter_name(parameters[i]), inputs[i]);
  return result;
}

// Of a program that this process made.
session_options made_here(session_options options) {
  if (options.compiling == compile_place::workers) options.compiling = compile_place::this_process;
  return options;
}

}  // namespace

opened_model::opened_model(const model_options& options, const output_options& output)
    : file_(options.file), view_(output), session_(open_session(options, view_)) {
  prepare(options);
}

opened_model::opened_model(program portable, const model_options& options, const output_options& output)
    : file_(options.file),
      view_(output),
      session_(std::move(portable), options.file, observed(made_here(session_options_of(options)), view_)) {
  prepare(options);
}

void opened_model::move_to(const model_options& options) {
  prepare(options);
  first_run_ms_ = -1;
  graph_ = {};
}

void opened_model::prepare(const model_options& options) {
  const program& portable = session_.portable();
  auto given = read_inputs(portable, options.inputs);
  const std::map<std::string, double> fills = read_fills(portable, options);
  for (const auto& [name, number] : fills) {
    if (given.contains(name)) throw error(error_kind::usage, fmt::format("input '{}' is given twice", name));
    // Its elements may be sizes. An input with open dimensions is filled when these are known.
    if (const shape& type = find_input(portable, name).type(); type.is_static())
      given.emplace(name, literal::filled(type, number));
  }
  if (!options.inputs_dir.empty()) given.merge(read_inputs_of_folder(portable.main(), options.inputs_dir, given));
  dim_bindings sizes = sizes_of(portable, given, options);
  const std::vector<std::string> decided = data_decided_sizes(portable);
  std::vector<std::string> open = open_dimensions(portable, sizes);
  std::erase_if(open, [&](const std::string& name) { return std::ranges::find(decided, name) != decided.end(); });
  if (!open.empty())
    throw error(error_kind::usage, are_open(open) + " with --dim NAME=N or --shape, or inputs that have them");
  program bound = portable.bind(sizes);
  for (value v : bound.main().parameters())
    if (auto found = given.find(module::parameter_name(v)); found != given.end() && found->second.type() != v.type())
      throw error(invalid_shape, fmt::format("input '{}' is {}, the model takes {}", found->first,
                                             found->second.type().str(), v.type().str()));
  auto inputs_of = [&](const module& main) {
    std::vector<literal> inputs;
    for (value v : main.parameters()) {
      const std::string& name = module::parameter_name(v);
      const auto found = given.find(name);
      const auto fill = fills.find(name);
      inputs.push_back(found != given.end()         ? found->second
                       : fill != fills.end()        ? literal::filled(v.type(), fill->second)
                       : !main.has_uses(v.producer) ? untouched_zeros(v.type())
                                                    : random_input(portable, name, v.type(), options.seed));
    }
    return inputs;
  };
  if (!decided.empty()) {
    std::vector<literal> inputs = inputs_of(bound.main());
    session_.add_data_sizes(sizes, named(bound.main(), inputs));
    instance_ = session_.at(sizes);
    inputs_ = std::move(inputs);
    return;
  }
  instance_ = session_.at(sizes, std::move(bound));
  // Last, because a damaged file may state inputs of any size, which its kernels do not take.
  inputs_ = inputs_of(instance_->bound().main());
}

std::map<std::string, literal> opened_model::named_inputs() const { return named(instance_->bound().main(), inputs_); }

std::vector<literal> opened_model::run_once() {
  auto begin = std::chrono::steady_clock::now();
  auto outputs = executable().evaluate(inputs_, instance_->graphs().options(), &graph_);
  if (first_run_ms_ < 0)
    first_run_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return outputs;
}

std::vector<kernel_tuning> opened_model::tune(const tuner_options& options, double budget_ms) {
  view_.begin_tuning();
  return instance_->tune(inputs_, options, budget_ms);
}

nlohmann::ordered_json describe(const graph_report& r, const std::optional<graph_decision>& decision,
                                const graph_memory& memory, const device& of) {
  nlohmann::ordered_json document{{"mode", r.mode},         {"captures", r.captures}, {"replays", r.replays},
                                  {"patches", r.patches},   {"updates", r.updates},   {"rebuilds", r.rebuilds},
                                  {"failures", r.failures}, {"segments", r.segments}, {"branches", r.branches},
                                  {"reason", r.reason}};
  document["decision"] = decision ? nlohmann::ordered_json(way_of(*decision)) : nlohmann::ordered_json();
  document["remembered"] = memory.remembered();
  const graph_usage usage = graphs_of(of);
  document["device_graphs"] = usage.graphs;
  document["device_graph_bytes"] = usage.bytes;
  if (decision) document["eager_ms"] = decision->eager_ms, document["replay_ms"] = decision->replay_ms;
  return document;
}

std::string threads_text(const nlohmann::ordered_json& description) {
  if (description["device"].get<std::string>() != "host") return "";
  const auto threads = description["threads"].get<unsigned>();
  return ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

nlohmann::ordered_json opened_model::describe() const {
  const plan_report& plan = executable().plan().report;
  const kernel_cache* cache = resources().cache();
  cache_counters counters = cache ? cache->counters() : cache_counters{};
  const device_info& info = resources().device().info();
  return {{"file", file_},
          {"device", info.name},
          {"device_description", info.description},
          {"threads", info.threads},
          {"target", resources().target().name},
          {"read_ms", read_ms()},
          {"load_ms", instance_->load_ms()},
          {"finalize_ms", instance_->finalize_ms()},
          {"first_run_ms", first_run_ms_},
          {"kernels", plan.kernels},
          {"launches", plan.launches},
          {"interpreted", plan.interpreted},
          {"arena_bytes", plan.arena_bytes},
          {"constant_bytes", plan.constant_bytes},
          {"prepared_bytes", plan.prepared_bytes},
          {"cache",
           {{"hits", instance_->report().hits},
            {"misses", instance_->report().misses},
            {"repaired", counters.repaired},
            {"layers",
             {{"folder", counters.folder_hits},
              {"read_only", counters.layer_hits},
              {"embedded", counters.embedded_hits},
              {"remote", counters.remote_hits}}}}},
          {"graph",
           tools::describe(graph_, instance_->graphs().options().decision, instance_->graphs(), resources().device())},
          {"tuning", describe_tuning(*this)}};
}

void opened_model::write_outputs(const std::string& folder, std::span<const literal> outputs) const {
  const plan& of = executable().plan();
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw error(error_kind::io, fmt::format("{}: {}", folder, failed.message()));
  std::map<std::string, std::string> written;  // file → output
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string file = file_name(of.outputs[i].name) + ".npy";
    auto [first, fresh] = written.emplace(file, of.outputs[i].name);
    if (!fresh)
      throw error(error_kind::unsupported,
                  fmt::format("outputs '{}' and '{}' would both be written to {}", first->second, of.outputs[i].name,
                              (std::filesystem::path(folder) / file).string()));
    const std::filesystem::path path = std::filesystem::path(folder) / file;
    if (const auto texts = texts_of(session_.portable(), of.outputs[i].name)) write_npy(path, outputs[i], *texts);
    else write_npy(path, outputs[i]);
  }
}

}  // namespace kiln::tools
