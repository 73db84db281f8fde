// Shows the events of a session as bars and lines on standard error.
#pragma once

#include <optional>

#include "session/events.hpp"
#include "tools/progress.hpp"

namespace kiln::tools {

class session_view {
 public:
  explicit session_view(const output_options& output) : output_(output) {}
  void show(const session_event& event);
  void begin_tuning();  // its bar counts from now on

 private:
  output_options output_;
  std::optional<progress_bar> finalizing_, tuning_;
};

}  // namespace kiln::tools
