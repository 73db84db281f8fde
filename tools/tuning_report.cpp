#include "tools/tuning_report.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>

namespace kiln::tools {

nlohmann::ordered_json describe_tuning(const opened_model& model) {
  kernel_groups groups = group_code_objects(model.instance().bound());
  std::size_t tuned = 0;
  double before = 0, after = 0;
  const tuning_records& records = model.resources().records();
  for (const kernel_group& g : groups.list) {
    auto record = records.find(g.portable.payload, g.inputs, g.outputs);
    const tuning_session* s = record ? record->session_of(records.compiler()) : nullptr;
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
                             {"ms_per_run", t.ms_per_run},
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

}  // namespace kiln::tools
