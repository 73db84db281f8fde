#include "runtime/step_timer.hpp"

namespace kiln {

step_timer::step_timer(device& target) {
  for (timed_step& s : steps_) s.begin = target.make_event(), s.end = target.make_event();
}

void step_timer::begin(std::uint32_t instruction, device_stream& stream) {
  if (used_ == steps_.size()) finish();
  steps_[used_].instruction = instruction;
  steps_[used_].begin->record(&stream);
}

void step_timer::end(device_stream& stream) { steps_[used_++].end->record(&stream); }

void step_timer::finish() {
  if (used_) steps_[used_ - 1].end->synchronize();
  for (std::size_t i = 0; i < used_; ++i) {
    auto& entry = profile_->instructions[steps_[i].instruction];
    entry.nanoseconds += static_cast<std::int64_t>(steps_[i].end->milliseconds_since(*steps_[i].begin) * 1e6);
    ++entry.steps;
  }
  used_ = 0;
}

}  // namespace kiln
