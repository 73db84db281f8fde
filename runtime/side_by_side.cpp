// Launches with fewer work items than the host has threads, such as the two directions of a recurrent layer: those that
// follow one another and touch different buffers run side by side.
#include <algorithm>

#include "runtime/plan_filler.hpp"

namespace kiln {
namespace {

// A launch that touches less than this is over before another thread has begun.
constexpr std::size_t least_bytes = 64 << 10;

const launch_step* launch_of(const plan_step& step) {
  const auto* launch = std::get_if<launch_step>(&step.what);
  return launch && launch->blocks == 0 ? launch : nullptr;
}

// Buffers of the caller may overlap each other, and a loop's moving buffers take turns.
bool is_outside(const plan_buffer& b) {
  return b.place == buffer_place::input || b.place == buffer_place::output || b.place == buffer_place::moving;
}

}  // namespace

bool plan_filler::is_worth_a_thread(const launch_step& launch) const {
  std::size_t bytes = 0;
  for (std::uint32_t a = 0; a < launch.argument_count; ++a)
    bytes += plan_.buffers[plan_.arguments[launch.first_argument + a]].bytes;
  return bytes >= least_bytes;
}

bool plan_filler::independent(const launch_step& one, const launch_step& other) const {
  for (std::uint32_t i = one.first_argument; i < one.first_argument + one.argument_count; ++i)
    for (std::uint32_t k = other.first_argument; k < other.first_argument + other.argument_count; ++k) {
      if (!plan_.written[i] && !plan_.written[k]) continue;
      const buffer_id a = plan_.arguments[i], b = plan_.arguments[k];
      if (a == b || (is_outside(plan_.buffers[a]) && is_outside(plan_.buffers[b]))) return false;
    }
  return true;
}

void plan_filler::find_neighbours() {
  neighbours_.resize(plan_.blocks.size());
  const device_info& on = parts_.target.info();
  if (!on.host_memory) return;
  for (std::size_t b = 0; b < plan_.blocks.size(); ++b) {
    auto& steps = plan_.blocks[b].steps;
    // The number of work items of a step that may have neighbours; 0 for others.
    auto items = [&](std::size_t s) -> std::int64_t {
      const launch_step* launch = launch_of(steps[s]);
      if (!launch || origins_[b][s] < 0 || launch->grid < 1 || launch->grid >= on.threads) return 0;
      return is_worth_a_thread(*launch) ? launch->grid : 0;
    };
    for (std::size_t first = 0, next = 0; first < steps.size(); first = next) {
      next = first + 1;
      for (std::int64_t sum = items(first); sum && next < steps.size(); ++next) {
        const std::int64_t more = items(next);
        const bool joins = more && (sum += more) <= on.threads &&
                           std::all_of(steps.begin() + static_cast<std::ptrdiff_t>(first),
                                       steps.begin() + static_cast<std::ptrdiff_t>(next), [&](const plan_step& step) {
                                         return independent(*launch_of(step), *launch_of(steps[next]));
                                       });
        if (!joins) break;
      }
      if (next == first + 1) continue;
      steps[first].together = static_cast<std::uint32_t>(next - first);
      neighbours_[b].emplace_back(origins_[b][first], origins_[b][next - 1]);
    }
  }
}

// A buffer that one of several neighbours uses lives as long as all of them run.
template_request plan_filler::lifetime(std::size_t block, template_request request) const {
  for (const auto& [first, last] : neighbours_[block]) {
    if (request.first > first && request.first <= last) request.first = first;
    if (request.last >= first && request.last < last) request.last = last;
  }
  return request;
}

}  // namespace kiln
