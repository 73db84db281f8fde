#include "session/graph_memory.hpp"

#include "jit/tuning/launched_program.hpp"

namespace kiln {

graph_memory::graph_memory(const tuning_records& records, const device& target, const program& native,
                           graph_policy policy, bool again)
    : policy_(policy) {
  if (policy == graph_policy::off || !target.has_graphs()) return;
  records_ = &records;
  shared_ = std::make_shared<found_out>();
  program_ = launched_program_hash(native);
  if (!again) remembered_ = records.find_graph(program_);
  if (policy == graph_policy::on && remembered_ && !remembered_->replay) remembered_.reset();
}

graph_options graph_memory::options() const {
  graph_options result{.policy = policy_, .decision = remembered_};
  if (shared_ && !remembered_) {
    std::lock_guard lock(shared_->mutex);
    result.decision = shared_->decision;
  }
  return result;
}

void graph_memory::keep(const execution_context& context) const {
  if (!records_ || policy_ != graph_policy::automatic || remembered_) return;
  const auto decision = context.decision();
  if (!decision) return;
  {
    std::lock_guard lock(shared_->mutex);
    if (shared_->decision) return;
    if (decision->replay) shared_->decision = decision;
  }
  records_->store_graph(program_, *decision);
}

void graph_memory::forget() {
  records_ = nullptr;
  remembered_.reset();
  shared_.reset();
}

}  // namespace kiln
