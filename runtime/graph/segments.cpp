#include "runtime/graph/segments.hpp"

#include <algorithm>
#include <map>

namespace kiln {
namespace {

// A range of bytes that a step reads or writes. Spaces never overlap; they are the arena, the zeroed memory, and each
// input, output and moving buffer.
struct access {
  std::uint64_t space = 0;
  std::size_t begin = 0, end = 0;
  bool writes = false;
};

constexpr std::uint64_t arena_space = 0, zeroed_space = 1, first_buffer_space = 2;

bool conflict(const std::vector<access>& a, const std::vector<access>& b) {
  for (const access& x : a)
    for (const access& y : b)
      if ((x.writes || y.writes) && x.space == y.space && x.begin < y.end && y.begin < x.end) return true;
  return false;
}

class cutter {
 public:
  cutter(const plan& of, bool orders) : plan_(of), orders_(orders) {}

  std::vector<graph_segment> cut() {
    for (std::uint32_t b = 0; b < plan_.blocks.size(); ++b) {
      const auto& steps = plan_.blocks[b].steps;
      for (std::uint32_t at = 0, end = 0; at < steps.size(); at = end + 1) {
        for (end = at; end < steps.size() && fits(steps[end]); ++end) {}
        if (end - at >= least_graph_steps) add(b, at, end - at);
      }
    }
    return std::move(segments_);
  }

 private:
  static bool fits(const plan_step& s) {
    return std::holds_alternative<launch_step>(s.what) || std::holds_alternative<copy_step>(s.what) ||
           std::holds_alternative<count_step>(s.what) || std::holds_alternative<call_step>(s.what);
  }

  void add(std::uint32_t block, std::uint32_t first, std::uint32_t count) {
    segment_ = {block, first, count, {}, {}, 0, false};
    slots_.clear();
    std::vector<std::vector<access>> accesses(count);
    for (node_ = 0; node_ < count; ++node_) {
      found_ = &accesses[node_];
      std::visit([this](const auto& s) { look_at(s); }, plan_.blocks[block].steps[first + node_].what);
    }
    if (orders_) order(accesses);
    segments_.push_back(std::move(segment_));
  }

  // Visits earlier steps from the nearest to the farthest, and adds an edge to each conflicting step that is not
  // already an indirect predecessor. Steps are then assigned to at most most_lanes lanes: a step that finds no free
  // lane waits for the last step of one.
  void order(const std::vector<std::vector<access>>& accesses) {
    std::size_t count = accesses.size();
    std::vector<std::vector<bool>> before(count);  // per node: all direct and indirect predecessors
    std::vector<std::uint32_t> lanes;              // the last node of each lane
    segment_.after.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      before[i].resize(i);
      for (std::uint32_t j = i; j-- > 0;)
        if (!before[i][j] && conflict(accesses[i], accesses[j])) wait(before, i, j);
      auto lane = std::ranges::find_if(lanes, [&](std::uint32_t last) { return before[i][last]; });
      if (lane == lanes.end() && lanes.size() < most_lanes) lane = lanes.insert(lane, i);
      if (lane == lanes.end()) {
        lane = std::ranges::min_element(lanes);
        std::erase_if(segment_.after[i], [&](std::uint32_t j) { return j < *lane && before[*lane][j]; });
        wait(before, i, *lane);
      }
      *lane = i;
      if (i && std::ranges::find(segment_.after[i], i - 1) == segment_.after[i].end()) segment_.branches = true;
    }
  }

  void wait(std::vector<std::vector<bool>>& before, std::uint32_t i, std::uint32_t j) {
    segment_.after[i].push_back(j);
    before[i][j] = true;
    for (std::uint32_t k = 0; k < j; ++k)
      if (before[j][k]) before[i][k] = true;
  }

  void look_at(const launch_step& s) {
    for (std::uint32_t a = s.first_argument; a < s.first_argument + s.argument_count; ++a)
      touch(plan_.arguments[a], plan_.written[a]);
  }
  void look_at(const call_step& s) {
    ++segment_.calls;
    for (std::uint32_t a = s.first_argument; a < s.first_argument + s.argument_count; ++a)
      touch(plan_.arguments[a], plan_.written[a]);
  }
  void look_at(const copy_step& s) { touch(s.from, false), touch(s.to, true); }
  void look_at(const count_step& s) {
    touch(s.to, true);
    use(true, s.counter);
  }
  void look_at(const check_step&) {}
  void look_at(const if_step&) {}
  void look_at(const loop_step&) {}
  void look_at(const interpreted_step&) {}

  void touch(buffer_id id, bool writes) {
    const plan_buffer& b = plan_.buffers[id];
    if (b.bytes == 0) return;
    switch (b.place) {
      case buffer_place::fixed: return;
      case buffer_place::arena: found_->push_back({arena_space, b.offset, b.offset + b.placed_bytes(), writes}); return;
      case buffer_place::zeroed: found_->push_back({zeroed_space, b.offset, b.offset + b.placed_bytes(), true}); return;
      case buffer_place::input:
      case buffer_place::output:
      case buffer_place::moving: break;
    }
    found_->push_back({first_buffer_space + id, 0, b.bytes, writes});
    use(false, id);
  }

  void use(bool is_counter, std::uint32_t index) {
    auto [it, is_new] = slots_.try_emplace({is_counter, index}, segment_.slots.size());
    if (is_new) segment_.slots.push_back({is_counter, index, {}});
    auto& nodes = segment_.slots[it->second].nodes;
    if (nodes.empty() || nodes.back() != node_) nodes.push_back(node_);
  }

  const plan& plan_;
  const bool orders_;
  std::vector<graph_segment> segments_;
  graph_segment segment_;
  std::map<std::pair<bool, std::uint32_t>, std::size_t> slots_;  // → segment_.slots
  std::uint32_t node_ = 0;
  std::vector<access>* found_ = nullptr;
};

}  // namespace

std::vector<graph_segment> cut_segments(const plan& of, bool orders) { return cutter(of, orders).cut(); }

}  // namespace kiln
