// One plan of a session for many sets of sizes, and its runner: for a caller whose sizes grow from run to run, as those
// of a decoder do. Made by session::series(); must not outlive the session. Used by one thread at a time.
#pragma once

#include <functional>
#include <memory>

#include "runtime/model_runner.hpp"
#include "runtime/plan_series.hpp"

namespace kiln {

class size_series {
 public:
  using move_function = std::function<bool(plan_series&, const dim_bindings&)>;
  // `move` gives the plan other sizes, see open_plans::move.
  size_series(plan_series plans, device& on, const graph_options& graphs, move_function move,
              std::function<void(const execution_context&)> at_end);

  // For the sizes that it was made for, or was last moved to.
  const kiln::plan& now() const { return *plans_.plan(); }
  // Goes on to other sizes. Runs that are enqueued keep theirs. Returns false, and changes nothing, if they need a plan
  // of their own.
  bool move_to(const dim_bindings& sizes) { return move_(plans_, sizes); }
  model_runner& runner() { return *runner_; }

 private:
  plan_series plans_;
  move_function move_;
  std::unique_ptr<model_runner> runner_;
};

}  // namespace kiln
