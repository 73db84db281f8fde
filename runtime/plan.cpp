// The textual form of a plan.
#include "runtime/plan.hpp"

#include <fmt/format.h>

namespace kiln {
namespace {

class plan_printer {
 public:
  explicit plan_printer(const plan& p) : plan_(p) {}

  std::string print() {
    for (std::size_t b = 0; b < plan_.blocks.size(); ++b) {
      text_ += fmt::format("block {} {}\n", b, plan_.blocks[b].module);
      for (const plan_step& step : plan_.blocks[b].steps) {
        std::visit([&](const auto& s) { line(s, plan_.instructions()[step.instruction].name); }, step.what);
        if (step.together > 1) text_ += fmt::format(" side by side with the next {}", step.together - 1);
        const auto& origin = plan_.instructions()[step.instruction].origin;
        text_ += origin.empty() ? "\n" : "  # " + origin + "\n";
      }
    }
    const plan_report& r = plan_.report;
    text_ += fmt::format(
        "{} kernels, {} launches, {} copies, {} interpreted; arena {} bytes (sum {}, bound {}); constants {} bytes, "
        "prepared {} bytes\n",
        r.kernels, r.launches, r.copies, r.interpreted, r.arena_bytes, r.arena_sum_bytes, r.arena_lower_bound,
        r.constant_bytes, r.prepared_bytes);
    return std::move(text_);
  }

 private:
  std::string name(buffer_id id) const {
    const plan_buffer& b = plan_.buffers[id];
    switch (b.place) {
      case buffer_place::arena: return fmt::format("arena[{}+{}]", b.offset, b.bytes);
      case buffer_place::zeroed: return fmt::format("zeroed[{}+{}]", b.offset, b.bytes);
      case buffer_place::fixed: return fmt::format("fixed{}[{}]", id, b.bytes);
      case buffer_place::input: return "input " + plan_.inputs[b.offset].name;
      case buffer_place::output: return "output " + plan_.outputs[b.offset].name;
      case buffer_place::moving: return fmt::format("moving{}[{}]", id, b.bytes);
    }
    return {};
  }
  template <class Range>
  std::string names(const Range& ids) const {
    std::string list;
    for (buffer_id id : ids) list += (list.empty() ? "" : ", ") + name(id);
    return list;
  }

  void line(const launch_step& s, const std::string& symbol) {
    std::span<const buffer_id> ids{plan_.arguments.data() + s.first_argument, s.argument_count};
    const std::string blocks = s.blocks ? fmt::format(" for {} blocks", s.blocks) : "";
    text_ += fmt::format("  launch {} grid {}{} ({})", symbol, s.grid, blocks, names(ids));
  }
  void line(const copy_step& s, const std::string&) {
    text_ += fmt::format("  copy {} <- {}", name(s.to), name(s.from));
    if (s.bytes) text_ += fmt::format(" ({} bytes from {} to {})", s.bytes, s.from_offset, s.to_offset);
  }
  void line(const count_step& s, const std::string&) {
    text_ += fmt::format("  count {} <- trip {}", name(s.to), s.counter);
  }
  void line(const call_step& s, const std::string& symbol) {
    std::span<const buffer_id> ids{plan_.arguments.data() + s.first_argument, s.argument_count};
    text_ += fmt::format("  call {} ({}) -> ({})", symbol, names(ids.first(s.input_count)),
                         names(ids.subspan(s.input_count)));
  }
  void line(const check_step& s, const std::string&) {
    text_ += fmt::format("  check {} is {}", name(s.computed), s.size);
  }
  void line(const if_step& s, const std::string&) {
    text_ += fmt::format("  if {} then block {} else block {}", name(s.condition), s.then_block, s.else_block);
  }
  void line(const loop_step& s, const std::string&) {
    text_ += fmt::format("  loop block {} trips {} condition {}", s.body, name(s.trip_count), name(s.condition));
    for (const carried_value& c : s.carried) text_ += fmt::format(" carry {} -> {}", name(c.initial), name(c.result));
    for (const scanned_value& v : s.scanned) text_ += fmt::format(" scan -> {}", name(v.result));
  }
  void line(const interpreted_step& s, const std::string& op) {
    text_ += fmt::format("  interpret {} ({}) -> ({})", op, names(s.inputs), names(s.outputs));
  }

  const plan& plan_;
  std::string text_;
};

}  // namespace

std::string plan::str() const { return plan_printer(*this).print(); }

}  // namespace kiln
