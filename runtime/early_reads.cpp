#include "runtime/early_reads.hpp"

#include <variant>
#include <vector>

namespace kiln {
namespace {

class early_reads {
 public:
  explicit early_reads(plan& of) : plan_(of), written_(of.buffers.size()) {}

  void check() {
    const bool straight = plan_.blocks.size() == 1;
    for (plan_block& block : plan_.blocks)
      for (plan_step& step : block.steps) {
        if (auto* l = std::get_if<launch_step>(&step.what))
          for (std::uint32_t a = l->first_argument; l->waits && a < l->first_argument + l->argument_count; ++a)
            l->waits = !plan_.early[a] || is_safe(plan_.arguments[a], straight);
        std::visit([this](const auto& what) { note_writes(what); }, step.what);
      }
  }

 private:
  bool is_safe(buffer_id id, bool straight) const {
    const buffer_place place = plan_.buffers[id].place;
    if (place == buffer_place::fixed) return true;
    return straight && (place == buffer_place::input || place == buffer_place::output) && !written_[id];
  }

  void note_arguments(std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t a = first; a < first + count; ++a)
      if (plan_.written[a]) written_[plan_.arguments[a]] = true;
  }
  void note_writes(const launch_step& s) { note_arguments(s.first_argument, s.argument_count); }
  void note_writes(const call_step& s) { note_arguments(s.first_argument, s.argument_count); }
  void note_writes(const copy_step& s) { written_[s.to] = true; }
  void note_writes(const count_step& s) { written_[s.to] = true; }
  void note_writes(const interpreted_step& s) {
    for (buffer_id id : s.outputs) written_[id] = true;
  }
  // These write nothing in a plan without other blocks.
  void note_writes(const check_step&) {}
  void note_writes(const if_step&) {}
  void note_writes(const loop_step&) {}

  plan& plan_;
  std::vector<bool> written_;  // per buffer: by a step so far
};

}  // namespace

void forbid_unsafe_early_reads(plan& of) { early_reads(of).check(); }

}  // namespace kiln
