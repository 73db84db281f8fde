#include "session/size_series.hpp"

#include <utility>

namespace kiln {

size_series::size_series(plan_series plans, device& on, const graph_options& graphs, move_function move,
                         std::function<void(const execution_context&)> at_end)
    : plans_(std::move(plans)),
      move_(std::move(move)),
      runner_(make_runner(executable(plans_.plan(), on), graphs, std::move(at_end))) {}

}  // namespace kiln
