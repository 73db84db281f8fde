#include "tools/model_options.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "ir/error.hpp"

namespace kiln::tools {
namespace {

struct unit {
  std::string_view name;
  double ms;
};
constexpr std::array units{unit{"ms", 1}, unit{"s", 1e3}, unit{"m", 6e4}, unit{"h", 3.6e6}, unit{"", 1e3}};

}  // namespace

void add_cache_option(CLI::App& app, cache_choice& choice) {
  app.add_option("--cache", choice.folder,
                 "Cache folder (default: KILN_CACHE_DIR, $XDG_CACHE_HOME/kiln or ~/.cache/kiln)");
  app.add_option("--cache-sign-key", choice.sign_key,
                 "Sign native code that is stored, exported or put into a file with this key (default: your own, "
                 "~/.config/kiln/key)");
  CLI::Option* trust = app.add_option(
      "--cache-trust", choice.trust,
      "Use native code of files, shared layers, servers and archives only where a key in this file has signed it "
      "(default: your own and ~/.config/kiln/trusted_keys)");
  app.add_flag(
         "--allow-unsigned-native", choice.allow_unsigned,
         "Use native code of files, servers and archives that no trusted key has signed: it can do whatever you can")
      ->excludes(trust);
}

void add_remote_option(CLI::App& app, cache_choice& choice) {
  app.add_option("--cache-remote", choice.remote,
                 "Cache behind the folder, asked for what is missing: redis://HOST:PORT/DATABASE (rediss:// for TLS) "
                 "and davs://HOST/FOLDER (WebDAV) "
                 "are given what is compiled, https://HOST/FOLDER is only read");
}

void add_model_options(CLI::App& app, model_options& o) {
  app.add_option("FILE", o.file, ".kiln file")->required();
  add_weights_options(app, o.weights);
  app.add_option("--device", o.device, "host, hip:0 or cuda:0");
  app.add_option("--target", o.target, "Finalize for this target instead of the processor found");
  app.add_option("--input", o.inputs, "NAME=FILE.npy; inputs without one are seeded random");
  app.add_option("--fill", o.fills, "NAME=NUMBER for an input whose elements are all this number");
  app.add_option("--inputs,--load-inputs", o.inputs_dir,
                 "Folder with every input that --input does not give, as NAME.npy or ONNX's input_N.pb");
  app.add_option("--seed", o.seed, "Seed of random inputs");
  app.add_option("--dim", o.dims, "NAME=VALUE for an open dimension that no input determines");
  app.add_option("--shape", o.shapes, "INPUT:1x3x224x224 gives the open dimensions of an input; INPUT:scalar has none");
  app.add_option("--graph", o.graph, "Graph replay")->check(CLI::IsMember({"on", "off", "auto"}));
  app.add_option("--tune", o.tune, "Tuning")->check(CLI::IsMember({"off", "quick", "full", "exhaustive"}));
  app.add_option("--tune-budget", o.tune_budget, "Wall-clock limit of tuning, e.g. 30s");
  app.add_option("--specialize", o.specialize,
                 "eager: compile every kernel for the sizes at hand; off: use kernels that serve all sizes, compiled "
                 "once; lazy: "
                 "what the cache has, else as eager for the first sizes and as off for later ones, with exact kernels "
                 "made in the "
                 "background for sizes that run often")
      ->check(CLI::IsMember({"lazy", "eager", "off"}));
  app.add_option("--threads", o.threads, "Threads that run kernels (0: all processors)")->check(CLI::Range(0, 4096));
  app.add_flag("--pin", o.pin, "A processor of its own for every thread that runs kernels on the host");
  add_worker_options(app, o.workers);
  add_cache_option(app, o.cache);
  add_remote_option(app, o.cache);
  app.add_flag("--no-cache", o.cache.disabled, "Neither read nor write the cache");
  app.add_flag("--if-cached", o.if_cached, "Exit 4 rather than compile anything");
  app.add_flag("--cache-verify", o.verify_cache, "Compile what the cache has again, compare, and replace what differs");
  app.add_option("--record-misses", o.record_misses,
                 "Add what the cache did not have to a log, for kiln warm --replay");
}

std::pair<std::string, std::string> split_assignment(const std::string& text, const char* option) {
  auto at = text.find('=');
  if (at == std::string::npos || at == 0)
    throw error(error_kind::usage, fmt::format("{} takes NAME=VALUE, not '{}'", option, text));
  return {text.substr(0, at), text.substr(at + 1)};
}

dim_bindings parse_bindings(const std::vector<std::string>& texts) {
  dim_bindings result;
  for (const std::string& text : texts) {
    auto [name, digits] = split_assignment(text, "--dim");
    std::int64_t number = 0;
    auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (code != std::errc{} || end != digits.data() + digits.size() || number < 0)
      throw error(error_kind::usage, fmt::format("--dim {}: '{}' is not a size", name, digits));
    if (auto [before, fresh] = result.emplace(name, number); before->second != number)
      throw error(error_kind::usage, fmt::format("--dim {}: it was {} before; give it once", text, before->second));
  }
  return result;
}

void require_known_dimensions(const program& p, const dim_bindings& sizes) {
  for (const auto& [name, size] : sizes)
    // bind() refuses the name with a message.
    if (!p.symbols.contains(name)) p.bind({{name, size}});
}

session_options session_options_of(const model_options& o) {
  session_options options{.device = o.device, .target = o.target, .threads = o.threads, .pinned = o.pin};
  options.cache = o.cache;
  options.compiling = compile_place_of(o.workers);
  options.only_cached = o.if_cached;
  options.verify_cache = o.verify_cache;
  options.record_misses = o.record_misses;
  options.graphs = graph_policy_named(o.graph).value();
  if (!parse_enum(o.specialize, options.specialization))
    throw error(error_kind::usage, fmt::format("--specialize: '{}' is not one of lazy, eager, off", o.specialize));
  options.tuning = parse_effort(o.tune);
  options.tuning_budget_ms = tuning_budget_ms(o);
  options.updated_inputs = o.updated_inputs;
  options.share_updated = !o.updated_inputs.empty();
  return options;
}

double parse_duration_ms(const std::string& text, const char* option) {
  double number = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (problem == std::errc() && std::isfinite(number) && number > 0)
    for (const unit& u : units)
      if (u.name == rest) return number * u.ms;
  throw error(error_kind::usage, fmt::format("{}: '{}' is not a duration such as 500ms, 30s or 2m", option, text));
}

tuning_effort parse_effort(const std::string& text) {
  tuning_effort effort{};
  if (!parse_enum(text, effort))
    throw error(error_kind::usage, fmt::format("--tune: '{}' is not one of off, quick, full, exhaustive", text));
  return effort;
}

double tuning_budget_ms(const model_options& options) {
  return options.tune_budget.empty() ? 30e3 : parse_duration_ms(options.tune_budget, "--tune-budget");
}
}  // namespace kiln::tools
