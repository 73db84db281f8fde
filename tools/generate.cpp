#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "generation/generate.hpp"
#include "ir/error.hpp"
#include "tools/command.hpp"
#include "tools/generation_model.hpp"
#include "tools/model_options.hpp"
#include "tools/npy.hpp"
#include "tools/prompt_rows.hpp"

namespace kiln::tools {
namespace {

using clock = std::chrono::steady_clock;

struct options : model_options {
  std::vector<std::string> prompts;
  std::string prompt_mask, output_dir, method = "greedy";
  generation_options generation;
  std::vector<std::string> encoder_inputs;
  std::int64_t context = 0, decoder_start = -1;
  bool ignore_stop = false;
};

struct method_row {
  const char* name;
  sampling_method method;
};
constexpr std::array methods{method_row{"greedy", sampling_method::greedy}, method_row{"top-k", sampling_method::top_k},
                             method_row{"top-p", sampling_method::top_p}};

double milliseconds(clock::time_point from, clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// Times and counts of one run of the loop. Everything after the first step is steady.
struct measurements {
  clock::time_point begin = clock::now(), opened, first, last;
  std::size_t steps = 0, later_tokens = 0;
  std::size_t first_plans = 0, first_compiled = 0, first_copied = 0;
  double first_planning_ms = 0;
};

generation_options completed(const options& o, const generation_files& files) {
  generation_options result = o.generation;
  result.sampling.method = std::ranges::find(methods, o.method, &method_row::name)->method;
  result.sampling.seed = o.seed;
  if (o.ignore_stop) result.stop_ids.clear();
  else result.stop_ids.insert(result.stop_ids.end(), files.stop_ids.begin(), files.stop_ids.end());
  result.decoder_start = o.decoder_start >= 0 ? o.decoder_start : files.decoder_start.value_or(-1);
  return result;
}

// One line for each step, at once: the new id of each prompt, "-" for one that has ended.
void print_step(const std::vector<std::int64_t>& ids) {
  std::string line;
  for (std::int64_t id : ids) line += (line.empty() ? "" : " ") + (id < 0 ? "-" : std::to_string(id));
  print("{}\n", line);
  std::fflush(stdout);
}

// [prompts, steps]; rows that ended early repeat their last id.
literal as_tensor(const id_rows& rows, bool one_row) {
  std::size_t longest = 0;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  std::vector<std::int64_t> all;
  for (const auto& row : rows) {
    all.insert(all.end(), row.begin(), row.end());
    all.insert(all.end(), longest - row.size(), row.empty() ? 0 : row.back());
  }
  const auto columns = static_cast<std::int64_t>(longest);
  if (one_row) return literal::of({element_type::i64, {columns}}, all);
  return literal::of({element_type::i64, {static_cast<std::int64_t>(rows.size()), columns}}, all);
}

nlohmann::ordered_json describe(const options& o, generation_model& model, const measurements& m, const id_rows& made,
                                bool one_row) {
  const double steady_ms = milliseconds(m.first, m.last) - (model.decoder().planning_ms() - m.first_planning_ms);
  nlohmann::ordered_json document{{"file", o.file}};
  if (one_row) document["tokens"] = made[0];
  else document["tokens"] = made;
  document["prefill_ms"] = milliseconds(m.opened, m.first) - m.first_planning_ms;
  document["time_to_first_token_ms"] = milliseconds(m.begin, m.first);
  document["tokens_per_second"] = m.later_tokens > 0 ? 1e3 * static_cast<double>(m.later_tokens) / steady_ms : 0.0;
  document["plans"] = model.plans();
  document["planning_ms"] = model.decoder().planning_ms();
  document["plans_after_first"] = model.plans() - m.first_plans;
  document["patches"] = model.decoder().patches();
  document["compiled"] = model.compiled();
  document["compiled_after_first"] = model.compiled() - m.first_compiled;
  document["state_bytes"] = model.decoder().state_bytes();
  document["copied_bytes_per_step"] =
      m.steps > 1 ? (model.decoder().copied_bytes() - m.first_copied) / (m.steps - 1) : 0;
  document["steps"] = m.steps;
  document["device"] = model.resources().device().info().name;
  document["target"] = model.resources().target().name;
  return document;
}

int generate_ids(const options& o, const output_options& output) {
  measurements m;
  const generation_files files = find_generation_files(o.file);
  generation_options wanted = completed(o, files);
  const id_rows prompts = read_prompts(o.prompts, o.prompt_mask);
  const bool one_row = prompts.size() == 1 && read_npy(o.prompts[0]).type().rank() == 1;
  const std::int64_t context = o.context > 0 ? o.context : files.context.value_or(0);
  generation_model model(files, session_options_of(o), output, context);
  if (model.decoder().encodes_ids() && wanted.decoder_start < 0)
    throw error(error_kind::usage,
                "decoder start: no config.json names decoder_start_token_id; give it with --decoder-start-id");
  wanted.encoder_inputs = model.encoder_inputs(o.encoder_inputs);
  m.opened = clock::now();
  const id_rows made = generate(model.decoder(), prompts, wanted, [&](const std::vector<std::int64_t>& ids) {
    m.last = clock::now();
    if (m.steps++ == 0) {
      m.first = m.last;
      m.first_plans = model.plans(), m.first_compiled = model.compiled();
      m.first_copied = model.decoder().copied_bytes();
      m.first_planning_ms = model.decoder().planning_ms();
    } else {
      m.later_tokens += static_cast<std::size_t>(std::ranges::count_if(ids, [](auto id) { return id >= 0; }));
    }
    if (!output.json && !output.quiet) print_step(ids);
    return true;
  });
  if (!o.output_dir.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(o.output_dir, failed);
    if (failed) throw error(error_kind::io, fmt::format("{}: {}", o.output_dir, failed.message()));
    write_npy(std::filesystem::path(o.output_dir) / "tokens.npy", as_tensor(made, one_row));
  }
  const auto document = describe(o, model, m, made, one_row);
  output.print(document, [&] {
    note(
        "{} steps; first id after {:.1f} ms ({:.1f} ms for the prompt), then {:.1f} ids/s; {} plans, {} patches, {} "
        "kernels compiled\n",
        m.steps, document["time_to_first_token_ms"].get<double>(), document["prefill_ms"].get<double>(),
        document["tokens_per_second"].get<double>(), model.plans(), document["patches"].get<std::size_t>(),
        model.compiled());
  });
  return 0;
}

}  // namespace

action declare_generate(CLI::App& app) {
  auto o = std::make_shared<options>();
  o->specialize = "off";
  generation_options& g = o->generation;
  sampling_options& s = g.sampling;
  app.add_option("FILE", o->file, ".kiln or .onnx file of a decoder, or a folder as optimum and genai write them")
      ->required();
  app.add_option("--prompt-ids", o->prompts, "IDS.npy: integers [ids] or [prompts, ids]; again for more prompts")
      ->required();
  app.add_option("--prompt-mask", o->prompt_mask, "MASK.npy of the same shape: 0 where the prompt is padding");
  app.add_option("--max-new-tokens", g.max_new_tokens,
                 "Most new ids of a prompt (default: 64, or what the context has room for)")
      ->check(CLI::PositiveNumber);
  app.add_option("--sample", o->method, "How the next id is chosen")
      ->check(CLI::IsMember({"greedy", "top-k", "top-p"}));
  app.add_option("--temperature", s.temperature, "Divides the logits before sampling")->check(CLI::PositiveNumber);
  app.add_option("--top-k", s.top_k, "With --sample top-k: the number of likeliest ids")->check(CLI::PositiveNumber);
  app.add_option("--top-p", s.top_p, "With --sample top-p: the probability of the likeliest ids together")
      ->check(CLI::Range(1e-9, 1.0));
  app.add_option("--repetition-penalty", s.repetition_penalty, "Makes ids of the sequence less likely if it is above 1")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", o->seed, "Seed of sampling");
  app.add_option("--stop-id", g.stop_ids, "A prompt ends with this id, as with those of the folder's configuration");
  app.add_flag("--ignore-stop-ids", o->ignore_stop, "Go on after stop ids");
  app.add_option("--context", o->context, "Most ids of a sequence (default: as the folder's configuration says)")
      ->check(CLI::PositiveNumber);
  app.add_option("--decoder-start-id", o->decoder_start,
                 "First id of a decoder with an encoder (default: as the folder's configuration says)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--encoder-input", o->encoder_inputs, "NAME=FILE.npy: an input of the encoder that is no ids");
  app.add_option("--output-dir", o->output_dir, "Folder for tokens.npy");
  app.add_option("--device", o->device, "host, hip:0 or cuda:0");
  app.add_option("--target", o->target, "Finalize for this target instead of the processor found");
  app.add_option("--specialize", o->specialize,
                 "off: use kernels that serve all sizes, compiled once; eager: compile every kernel for each length; "
                 "lazy: eager for the prompt, then off")
      ->check(CLI::IsMember({"lazy", "eager", "off"}));
  app.add_option("--graph", o->graph, "Graph replay of the steps after the first")
      ->check(CLI::IsMember({"on", "off", "auto"}));
  app.add_option("--threads", o->threads, "Threads that run kernels (0: all processors)")->check(CLI::Range(0, 4096));
  app.add_flag("--pin", o->pin, "A processor of its own for every thread that runs kernels on the host");
  add_worker_options(app, o->workers);
  add_cache_option(app, o->cache);
  add_remote_option(app, o->cache);
  app.add_flag("--no-cache", o->cache.disabled, "Neither read nor write the cache");
  app.add_flag("--if-cached", o->if_cached, "Exit 4 rather than compile anything");
  return [o](const output_options& output) { return generate_ids(*o, output); };
}

}  // namespace kiln::tools
