#include "tools/model_session.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <charconv>
#include <filesystem>
#include <map>

#include "ir/bind_shapes.hpp"
#include "ir/container/container.hpp"
#include "ir/error.hpp"
#include "jit/compare_cached.hpp"
#include "jit/prepared_cache.hpp"
#include "jit/remote/redis_layer.hpp"
#include "jit/targets.hpp"
#include "jit/tuning/device_class.hpp"
#include "jit/warm/recorded_miss.hpp"
#include "tools/npy.hpp"
#include "tools/progress.hpp"
#include "tools/random_inputs.hpp"
#include "tools/tuning_choice.hpp"

namespace kiln::tools {
namespace {

using clock = std::chrono::steady_clock;

double since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

std::map<std::string, literal> read_inputs(const program& p, const std::vector<std::string>& texts) {
  std::map<std::string, value> parameters;
  for (value v : p.main().parameters()) parameters.emplace(module::parameter_name(v), v);
  std::map<std::string, literal> result;
  for (const std::string& text : texts) {
    auto [name, file] = split_assignment(text, "--input");
    auto found = parameters.find(name);
    if (found == parameters.end()) throw error(error_kind::usage, fmt::format("the model has no input '{}'", name));
    if (!result.emplace(name, as_type(read_npy(file), found->second.type().type)).second)
      throw error(error_kind::usage, fmt::format("input '{}' is given twice", name));
  }
  return result;
}

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
  app.add_option(
      "--cache-remote", choice.remote,
      "Redis server behind the folder, redis://HOST:PORT/DATABASE: asked for what is missing, given what is compiled");
}

cache_options cache_options_of(const cache_choice& choice) {
  cache_options options = default_cache_options(choice.folder);
  if (!choice.sign_key.empty()) options.sign_with = signing_key::read(choice.sign_key);
  options.consent = consent_of(choice);
  if (!choice.remote.empty()) options.remote = make_redis_layer(parse_redis_url(choice.remote));
  return options;
}

native_consent consent_of(const cache_choice& choice) {
  native_consent consent{.user = user_keys::of_this_user(), .allow_unsigned = choice.allow_unsigned};
  if (!choice.trust.empty()) consent.only = trusted_keys::read(choice.trust);
  return consent;
}

std::unique_ptr<kernel_cache> open_cache(const cache_choice& choice, std::shared_ptr<const embedded_entries> embedded) {
  if (choice.disabled) return nullptr;
  cache_options options = cache_options_of(choice);
  options.embedded = std::move(embedded);
  return kernel_cache::open(std::move(options));
}

std::unique_ptr<tuning_records> open_records(const std::filesystem::path& folder,
                                             std::vector<std::filesystem::path> layers, const chosen_device& chosen,
                                             std::string hints) {
  return std::make_unique<tuning_records>(
      tuning_records_options{.folder = folder,
                             .layers = std::move(layers),
                             .device_class = device_class(chosen.device->info(), chosen.target),
                             .compiler = this_compiler(chosen.target.family),
                             .hints = std::move(hints)});
}

void add_model_options(CLI::App& app, model_options& o) {
  app.add_option("FILE", o.file, ".kiln file")->required();
  app.add_option("--device", o.device, "host, hip:0 or cuda:0");
  app.add_option("--target", o.target, "Finalize for this target instead of the processor found");
  app.add_option("--input", o.inputs, "NAME=FILE.npy; inputs without one are seeded random");
  app.add_option("--seed", o.seed, "Seed of random inputs");
  app.add_option("--dim", o.dims, "NAME=VALUE for an open dimension that no input determines");
  app.add_option("--graph", o.graph, "Graph replay")->check(CLI::IsMember({"on", "off", "auto"}));
  app.add_option("--tune", o.tune, "Tuning")->check(CLI::IsMember({"off", "quick", "full", "exhaustive"}));
  app.add_option("--tune-budget", o.tune_budget, "Wall-clock limit of tuning, e.g. 30s");
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
    result.insert_or_assign(name, number);
  }
  return result;
}

dim_bindings bindings_from_inputs(const program& p, const std::map<std::string, literal>& given) {
  std::vector<given_shape> shapes;
  for (value v : p.main().parameters())
    if (auto found = given.find(module::parameter_name(v)); found != given.end())
      shapes.push_back({found->first, v.type(), found->second.type()});
  dim_bindings bindings = bind_shapes(shapes);
  for (const auto& [name, data] : given) bindings.merge(bind_values(p.symbols, name, data));
  return bindings;
}

model_session::model_session(const model_options& options, const output_options& output)
    : options_(options),
      workers_(workers_for_files(options.workers)),
      chosen_(choose_device(options.device, options.target, static_cast<unsigned>(options.threads), options.pin)) {
  auto begin = clock::now();
  portable_ = read_program(options.file, consent_of(options.cache));
  if (!options.cache.disabled) embedded_ = embedded_entries::read(options.file);
  hints_ = read_extras(options.file).tuning_hints;
  read_ms = since(begin);
  finish(output);
}

model_session::model_session(program portable, const model_options& options, const output_options& output)
    : options_(options),
      portable_(std::move(portable)),
      workers_(options.workers.isolated ? workers_for_files(options.workers) : nullptr),
      chosen_(choose_device(options.device, options.target, static_cast<unsigned>(options.threads), options.pin)) {
  finish(output);
}

void model_session::finish(const output_options& output) {
  auto given = read_inputs(portable_, options_.inputs);
  given.insert(options_.given.begin(), options_.given.end());
  dim_bindings bindings = bindings_from_inputs(portable_, given);
  for (const auto& [name, number] : parse_bindings(options_.dims)) bindings.insert_or_assign(name, number);
  for (const auto& [name, range] : portable_.symbols)
    if (!bindings.contains(name))
      throw error(
          error_kind::usage,
          fmt::format("dimension '{}' is open: give it a value with --dim {}=N, or an input that has it", name, name));
  bound_ = portable_.bind(bindings);
  for (value v : bound_.main().parameters()) {
    const std::string& name = module::parameter_name(v);
    auto found = given.find(name);
    if (found != given.end() && found->second.type() != v.type())
      throw error(error_kind::usage, fmt::format("input '{}' is {}, the model takes {}", name,
                                                 found->second.type().str(), v.type().str()));
    inputs_.push_back(found != given.end() ? found->second : random_input(bound_, name, v.type(), options_.seed));
  }

  cache_ = open_cache(options_.cache, embedded_);
  records_ = cache_ ? open_records(cache_->folder(), cache_->layers(), chosen_, hints_)
                    : open_records({}, {}, chosen_, hints_);
  auto begin = clock::now();
  progress_bar progress("finalizing", output);
  jit_options jit = compiling();
  jit.progress = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
  if (cache_ && options_.verify_cache)
    for (const cache_mismatch& m : compare_with_cache(bound_, jit, true).mismatches)
      spdlog::warn("kernel cache: entry {} of kernel '{}' holds {}, the compiler makes {}: replaced", m.key, m.symbol,
                   m.cached, m.compiled);
  native_ = compile_recorded(jit);
  progress.finish();
  finalize_ms = since(begin);

  begin = clock::now();
  if (cache_) prepared_ = make_prepared_store(*cache_);
  executable_ = load(native_, device(), planning());
  graphs_ = graph_memory(*records_, device(), native_, graph_policy_named(options_.graph).value());
  load_ms = since(begin);
}

// compile_bytecode, with what the cache lacked written to --record-misses.
program model_session::compile_recorded(const jit_options& jit) {
  const std::string& log = options_.record_misses;
  try {
    program native = compile_bytecode(bound_, jit, &report);
    if (!log.empty()) append_misses(log, misses_of(bound_, jit, report, options_.file));
    return native;
  } catch (const error& e) {
    if (!log.empty() && options_.if_cached && e.kind() == error_kind::not_cached)
      append_misses(log, absent_kernels(bound_, jit, options_.file));
    throw;
  }
}

jit_options model_session::compiling() const {
  jit_options jit = chosen_.compiling();
  jit.cache = cache_.get();
  jit.records = records_.get();
  jit.threads = options_.threads;
  jit.workers = workers_;
  jit.only_if_cached = options_.if_cached;
  return jit;
}

std::map<std::string, literal> model_session::named_inputs() const {
  std::map<std::string, literal> result;
  auto parameters = bound_.main().parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) result.emplace(module::parameter_name(parameters[i]), inputs_[i]);
  return result;
}

std::vector<literal> model_session::run_once() {
  auto begin = clock::now();
  auto outputs = executable_->evaluate(inputs_, graphs_.options(), &graph);
  if (first_run_ms < 0) first_run_ms = since(begin);
  return outputs;
}

nlohmann::ordered_json model_session::describe() const {
  const plan_report& plan = executable_->plan().report;
  cache_counters counters = cache_ ? cache_->counters() : cache_counters{};
  const device_info& info = chosen_.device->info();
  return {{"file", options_.file},
          {"device", info.name},
          {"device_description", info.description},
          {"threads", info.threads},
          {"target", chosen_.target.name},
          {"read_ms", read_ms},
          {"load_ms", load_ms},
          {"finalize_ms", finalize_ms},
          {"first_run_ms", first_run_ms},
          {"kernels", plan.kernels},
          {"launches", plan.launches},
          {"interpreted", plan.interpreted},
          {"arena_bytes", plan.arena_bytes},
          {"constant_bytes", plan.constant_bytes},
          {"prepared_bytes", plan.prepared_bytes},
          {"cache",
           {{"hits", report.hits},
            {"misses", report.misses},
            {"repaired", counters.repaired},
            {"layers",
             {{"folder", counters.folder_hits},
              {"read_only", counters.layer_hits},
              {"embedded", counters.embedded_hits},
              {"remote", counters.remote_hits}}}}},
          {"graph", graphs_.describe(graph, graphs_.options().decision)},
          {"tuning", describe_tuning(*this)}};
}

void model_session::adopt(kiln::executable better) {
  if (&better.plan() != &executable_->plan()) graphs_.forget();
  executable_ = std::move(better);
}

void write_outputs(const std::string& folder, const plan& of, std::span<const literal> outputs) {
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
    write_npy(std::filesystem::path(folder) / file, outputs[i]);
  }
}

}  // namespace kiln::tools
