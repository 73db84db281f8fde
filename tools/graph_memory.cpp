#include "tools/graph_memory.hpp"

#include "jit/tuning/launched_program.hpp"

namespace kiln::tools {
namespace {

const char* way_of(const graph_decision& d) { return !d.replay ? "eager" : d.branches ? "branches" : "chain"; }

}  // namespace

graph_memory::graph_memory(const tuning_records& records, const device& target, const program& native,
                           graph_policy policy, bool again)
    : policy_(policy) {
  if (policy == graph_policy::off || !target.has_graphs()) return;
  records_ = &records;
  program_ = launched_program_hash(native);
  if (!again) remembered_ = records.find_graph(program_);
  if (policy == graph_policy::on && remembered_ && !remembered_->replay) remembered_.reset();
}

void graph_memory::keep(const execution_context& context) const {
  if (!records_ || policy_ != graph_policy::automatic || remembered_) return;
  if (auto decision = context.decision()) records_->store_graph(program_, *decision);
}

nlohmann::ordered_json graph_memory::describe(const graph_report& r,
                                              const std::optional<graph_decision>& decision) const {
  nlohmann::ordered_json document{{"mode", r.mode},         {"captures", r.captures}, {"replays", r.replays},
                                  {"patches", r.patches},   {"updates", r.updates},   {"rebuilds", r.rebuilds},
                                  {"failures", r.failures}, {"segments", r.segments}, {"branches", r.branches},
                                  {"reason", r.reason}};
  document["decision"] = decision ? nlohmann::ordered_json(way_of(*decision)) : nlohmann::ordered_json();
  document["remembered"] = remembered_.has_value();
  if (decision) document["eager_ms"] = decision->eager_ms, document["replay_ms"] = decision->replay_ms;
  return document;
}

}  // namespace kiln::tools
