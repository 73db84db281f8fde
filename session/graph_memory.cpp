#include "session/graph_memory.hpp"

#include "jit/tuning/launched_program.hpp"

namespace kiln {
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

}  // namespace kiln
