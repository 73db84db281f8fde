#include "tools/launch_profile.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace kiln::tools {
namespace {

// Calls `visit` with every buffer that a step reads or writes; for `if` and `loop` also those of their bodies.
template <class Visit>
struct buffer_visitor {
  const plan& of;
  Visit visit;

  void arguments(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) visit(of.arguments[first + i]);
  }
  void block(std::uint32_t index) {
    for (const plan_step& step : of.blocks[index].steps) std::visit(*this, step.what);
  }
  void operator()(const launch_step& s) { arguments(s.first_argument, s.argument_count); }
  void operator()(const call_step& s) { arguments(s.first_argument, s.argument_count); }
  void operator()(const copy_step& s) { visit(s.to), visit(s.from); }
  void operator()(const count_step& s) { visit(s.to); }
  void operator()(const check_step& s) { visit(s.computed); }
  void operator()(const if_step& s) { visit(s.condition), block(s.then_block), block(s.else_block); }
  void operator()(const loop_step& s) {
    for (buffer_id b : {s.trip_count, s.condition}) visit(b);
    for (const carried_value& c : s.carried)
      for (buffer_id b : {c.initial, c.result, c.spare}) visit(b);
    for (const scanned_value& c : s.scanned) visit(c.result);
    block(s.body);
  }
  void operator()(const interpreted_step& s) {
    for (buffer_id b : s.inputs) visit(b);
    for (buffer_id b : s.outputs) visit(b);
  }
};

template <class Visit>
void visit_buffers(const plan& of, const plan_step& step, Visit visit) {
  buffer_visitor<Visit&> visitor{of, visit};
  std::visit(visitor, step.what);
}

// Size of the union of the intervals [begin, end): several buffers may be views of the same bytes.
std::size_t covered(std::vector<std::pair<std::size_t, std::size_t>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::size_t sum = 0, end = 0;
  for (auto [first, last] : intervals) {
    sum += last > std::max(first, end) ? last - std::max(first, end) : 0;
    end = std::max(end, last);
  }
  return sum;
}

struct step_memory {
  std::size_t bytes = 0, live_bytes = 0;
};

// For each instruction: the bytes of its buffers, and the most bytes of the arena that are live during its steps. Steps
// in the bodies of `if` and `loop` belong to the step of the main module that runs the body.
std::vector<step_memory> measure_memory(const plan& of) {
  const auto& steps = of.blocks.front().steps;
  constexpr std::size_t unused = std::numeric_limits<std::size_t>::max();
  struct life {
    std::size_t first = unused, last = 0;
  };
  std::vector<life> lives(of.buffers.size());
  for (std::size_t i = 0; i < steps.size(); ++i)
    visit_buffers(of, steps[i], [&](buffer_id b) {
      lives[b].first = std::min(lives[b].first, i);
      lives[b].last = i;
    });
  std::vector<step_memory> result(of.instructions().size());
  for (const plan_block& block : of.blocks)
    for (const plan_step& step : block.steps) {
      std::set<buffer_id> distinct;
      visit_buffers(of, step, [&](buffer_id b) { distinct.insert(b); });
      for (buffer_id b : distinct) result[step.instruction].bytes += of.buffers[b].bytes;
    }
  std::vector<std::vector<buffer_id>> starting(steps.size());
  for (buffer_id b = 0; b < lives.size(); ++b)
    if (of.buffers[b].place == buffer_place::arena && lives[b].first != unused) starting[lives[b].first].push_back(b);
  std::vector<buffer_id> live;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    live.insert(live.end(), starting[i].begin(), starting[i].end());
    std::vector<std::pair<std::size_t, std::size_t>> intervals;
    for (buffer_id b : live) intervals.emplace_back(of.buffers[b].offset, of.buffers[b].offset + of.buffers[b].bytes);
    auto& most = result[steps[i].instruction].live_bytes;
    most = std::max(most, covered(std::move(intervals)));
    std::erase_if(live, [&](buffer_id b) { return lives[b].last == i; });
  }
  return result;
}

}  // namespace

nlohmann::ordered_json profile_launches(const executable& exe, const io_buffers& buffers, int runs) {
  execution_context context = exe.make_context({.policy = graph_policy::off});
  run_profile profile;
  for (int i = 0; i < runs; ++i) exe.run_timed(context, buffers.inputs(), buffers.outputs(), profile);
  const std::vector<step_memory> memory = measure_memory(exe.plan());
  auto list = nlohmann::ordered_json::array();
  const auto& instructions = exe.plan().instructions();
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (profile.instructions[i].steps == 0) continue;
    double ms = static_cast<double>(profile.instructions[i].nanoseconds) / 1e6 / runs;
    list.push_back({{"symbol", instructions[i].name},
                    {"payload", instructions[i].payload},
                    {"origin", instructions[i].origin},
                    {"ms", ms},
                    {"launches", profile.instructions[i].steps / runs},
                    {"bytes", memory[i].bytes},
                    {"live_bytes", memory[i].live_bytes}});
  }
  return list;
}

}  // namespace kiln::tools
