#include "jit/tuning/tuning_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "ir/error.hpp"
#include "ir/json.hpp"

namespace kiln {
namespace {

using json = nlohmann::ordered_json;

// A later version of Kiln may keep more than `most_sessions` sessions. A record with more than this many is corrupt.
constexpr std::size_t most_sessions_read = 64;

json describe(const candidate_result& c) {
  json result{{"configuration", c.configuration}, {"outcome", enum_name(c.outcome)}};
  if (c.samples) {
    result["ms"] = c.ms;
    result["low_ms"] = c.low_ms;
    result["high_ms"] = c.high_ms;
    result["samples"] = c.samples;
  }
  if (!c.reason.empty()) result["reason"] = c.reason;
  return result;
}

json describe(const tuning_session& s) {
  auto candidates = json::array();
  for (const candidate_result& c : s.candidates) candidates.push_back(describe(c));
  return {{"code", s.compiler.code},    {"llvm", s.compiler.llvm},       {"tuned_at", s.tuned_at},
          {"generation", s.generation}, {"effort", enum_name(s.effort)}, {"complete", s.complete},
          {"winner", s.winner},         {"default_ms", s.default_ms},    {"winner_ms", s.winner_ms},
          {"error", s.error},           {"candidates", candidates}};
}

double milliseconds(const json& from, const char* key) {
  double value = from.at(key).get<double>();
  if (!std::isfinite(value) || value < 0)
    throw error(error_kind::corrupted, fmt::format("its {} is not a valid time", key));
  return value;
}

template <class Enum>
Enum parse(const json& from, const char* key) {
  Enum value{};
  if (!parse_enum(from.at(key).get_ref<const std::string&>(), value))
    throw error(error_kind::corrupted, fmt::format("its {} is unknown", key));
  return value;
}

kernel_configuration configuration_of(const json& from) {
  kernel_configuration result;
  for (const auto& [name, value] : from.get_ref<const json::object_t&>())
    result[name] = integer_of<std::int64_t>(value);
  return result;
}

candidate_result parse_candidate(const json& from) {
  candidate_result c{configuration_of(from.at("configuration")),
                     parse<candidate_outcome>(from, "outcome"),
                     0,
                     0,
                     0,
                     0,
                     from.value("reason", "")};
  if (!from.contains("samples")) return c;
  c.ms = milliseconds(from, "ms");
  c.low_ms = milliseconds(from, "low_ms");
  c.high_ms = milliseconds(from, "high_ms");
  c.samples = integer_of<int>(from.at("samples"));
  return c;
}

tuning_session parse_session(const json& from) {
  tuning_session s;
  s.compiler.code = from.contains("code") ? from.at("code").get<std::string>()
                                          : fmt::format("pipeline {}", integer_of<int>(from.at("pipeline")));
  s.compiler.llvm = from.at("llvm").get<std::string>();
  s.tuned_at = from.contains("tuned_at") ? integer_of<std::int64_t>(from.at("tuned_at")) : 0;
  s.generation = integer_of<int>(from.at("generation"));
  s.effort = parse<tuning_effort>(from, "effort");
  s.complete = from.at("complete").get<bool>();
  s.winner = configuration_of(from.at("winner"));
  s.default_ms = milliseconds(from, "default_ms");
  s.winner_ms = milliseconds(from, "winner_ms");
  s.error = milliseconds(from, "error");
  for (const json& c : from.at("candidates")) s.candidates.push_back(parse_candidate(c));
  return s;
}

// A total order of the sessions of one compiler. merge() keeps the greatest.
auto rank(tuning_session s) {
  s.tuned_at = 0;  // the merged session has the latest of all
  auto timed = std::ranges::count_if(s.candidates, [](const candidate_result& c) { return c.samples > 0; });
  return std::tuple(s.generation, timed, s.effort, s.complete,
                    describe(s).dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace

content_hash record_identity::hash() const {
  field_hasher hasher;
  hasher.add("kiln tuning record").add(payload).add(device_class);
  for (const auto* list : {&inputs, &outputs}) {
    hasher.add(static_cast<std::int64_t>(list->size()));
    for (const std::string& text : *list) hasher.add(text);
  }
  return hasher.finish();
}

record_identity identify(const std::string& payload, const std::vector<shape>& inputs,
                         const std::vector<shape>& outputs, const std::string& device_class) {
  record_identity result{payload, {}, {}, device_class};
  for (const shape& s : inputs) result.inputs.push_back(s.str());
  for (const shape& s : outputs) result.outputs.push_back(s.str());
  return result;
}

const tuning_session* tuning_record::session_of(const compiler_identity& compiler) const {
  auto found = std::ranges::find(sessions, compiler, &tuning_session::compiler);
  return found == sessions.end() ? nullptr : &*found;
}

tuning_record merge(const tuning_record& a, const tuning_record& b) {
  tuning_record result = a;
  for (const tuning_session& s : b.sessions) {
    auto same = std::ranges::find(result.sessions, s.compiler, &tuning_session::compiler);
    if (same == result.sessions.end()) result.sessions.push_back(s);
    else {
      const std::int64_t latest = std::max(same->tuned_at, s.tuned_at);
      if (rank(*same) < rank(s)) *same = s;
      same->tuned_at = latest;
    }
  }
  std::ranges::sort(result.sessions, std::greater(),
                    [](const tuning_session& s) { return std::tie(s.tuned_at, s.compiler); });
  return result;
}

tuning_record newest_sessions(tuning_record record) {
  if (record.sessions.size() > most_sessions) record.sessions.resize(most_sessions);
  return record;
}

std::string to_text(const tuning_record& record) {
  auto sessions = json::array();
  for (const tuning_session& s : record.sessions) sessions.push_back(describe(s));
  const record_identity& i = record.identity;
  return json{{"kiln_tuning_record", tuning_record_version},
              {"payload", i.payload},
              {"inputs", i.inputs},
              {"outputs", i.outputs},
              {"device_class", i.device_class},
              {"sessions", sessions}}
             .dump(1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

tuning_record parse_record(std::string_view text) { return read_record(parse_json(text)); }

tuning_record read_record(const json& document) {
  try {
    if (int version = integer_of<int>(document.at("kiln_tuning_record")); version > tuning_record_version)
      throw error(error_kind::newer_version, fmt::format("a tuning record of version {}: this Kiln reads version {}",
                                                         version, tuning_record_version));
    tuning_record record{
        {document.at("payload").get<std::string>(), document.at("inputs").get<std::vector<std::string>>(),
         document.at("outputs").get<std::vector<std::string>>(), document.at("device_class").get<std::string>()},
        {}};
    std::set<compiler_identity> compilers;
    for (const json& s : document.at("sessions")) {
      record.sessions.push_back(parse_session(s));
      if (!compilers.insert(record.sessions.back().compiler).second)
        throw error(error_kind::corrupted, "a tuning record with two sessions of one compiler");
      if (compilers.size() > most_sessions_read)
        throw error(error_kind::corrupted,
                    fmt::format("a tuning record with more than {} sessions", most_sessions_read));
    }
    return merge({record.identity, {}}, record);  // sorts the sessions, whatever their order in the text
  } catch (const nlohmann::json::exception& e) {
    throw error(error_kind::corrupted, fmt::format("not a tuning record: {}", problem_of(e)));
  }
}

}  // namespace kiln
