#include "tools/tuning_choice.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "ir/error.hpp"
#include "jit/tuning/heat.hpp"
#include "runtime/host_device.hpp"
#include "tools/progress.hpp"

namespace kiln::tools {
namespace {

constexpr int heat_runs = 3;

struct unit {
  std::string_view name;
  double ms;
};
constexpr std::array units{unit{"ms", 1}, unit{"s", 1e3}, unit{"m", 6e4}, unit{"h", 3.6e6}, unit{"", 1e3}};

}  // namespace

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

std::shared_ptr<device> timing_device(model_session& session) {
  device& d = session.device();
  if (d.info().host_memory) return std::make_shared<host_device>(d.info().threads);
  return {std::shared_ptr<void>(), &d};
}

nlohmann::ordered_json describe_tuning(const model_session& session) {
  kernel_groups groups = group_code_objects(session.bound());
  std::size_t tuned = 0;
  double before = 0, after = 0;
  const tuning_records* records = session.records();
  for (const kernel_group& g : groups.list) {
    auto record = records ? records->find(g.portable.payload, g.inputs, g.outputs) : std::nullopt;
    const tuning_session* s = record ? record->session_of(records->compiler()) : nullptr;
    if (!s) continue;
    ++tuned;
    before += s->default_ms * g.occurrences;
    after += s->winner_ms * g.occurrences;
  }
  const double all = static_cast<double>(std::max<std::size_t>(groups.list.size(), 1));
  return {{"tier", tuned ? 1 : 0},
          {"kernels", groups.list.size()},
          {"tuned", tuned},
          {"progress", static_cast<double>(tuned) / all},
          {"gain", after > 0 ? before / after : 1.0},
          {"seconds", 0.0}};
}

nlohmann::ordered_json describe(const kernel_tuning& t) {
  constexpr std::array states{"tuned", "known", "not reached", "failed"};
  std::map<std::string, int> outcomes;
  for (const candidate_result& c : t.session.candidates) ++outcomes[std::string(enum_name(c.outcome))];
  nlohmann::ordered_json row{{"symbol", t.symbol},
                             {"payload", t.payload},
                             {"inputs", nlohmann::ordered_json::array()},
                             {"occurrences", t.occurrences},
                             {"heat_ms", t.heat_ms},
                             {"state", states[static_cast<std::size_t>(t.outcome)]},
                             {"default_ms", t.session.default_ms},
                             {"tuned_ms", t.session.winner_ms},
                             {"speedup", t.gain()},
                             {"winner", t.session.winner},
                             {"complete", t.session.complete},
                             {"error", t.session.error},
                             {"outcomes", outcomes}};
  for (const shape& s : t.inputs) row["inputs"].push_back(s.str());
  if (!t.reason.empty()) row["reason"] = t.reason;
  auto failures = nlohmann::ordered_json::array();
  for (const candidate_result& c : t.session.candidates)
    if (c.outcome != candidate_outcome::measured && c.outcome != candidate_outcome::duplicate)
      failures.push_back({{"configuration", c.configuration}, {"outcome", enum_name(c.outcome)}, {"reason", c.reason}});
  row["failures"] = failures;
  return row;
}

std::vector<kernel_tuning> tune_session(model_session& session, const tuner_options& options, double budget_ms,
                                        const output_options& output) {
  io_buffers tensors(session.executable());
  tensors.upload(session.inputs());
  std::vector<double> heat = measure_heat(session.executable(), session.report, tensors, heat_runs);
  jit_options jit = session.compiling();
  jit.only_if_cached = false;
  tuner tuning(session.bound(), timing_device(session), jit, session.records(), options);
  progress_bar progress("tuning", output);
  std::size_t done = 0;
  auto results = tuning.tune_all(heat, budget_ms,
                                 [&](const kernel_tuning&, std::size_t) { progress.update(++done, heat.size()); });
  progress.finish();
  return results;
}

}  // namespace kiln::tools
