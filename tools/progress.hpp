// Shows the progress of long work on standard error: a bar with count, rate and remaining time on a terminal, plain
// lines elsewhere. Nothing is shown in the first second, nor with --quiet.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "tools/command.hpp"

namespace kiln::tools {

class progress_bar {
 public:
  progress_bar(std::string what, const output_options& output);
  void update(std::size_t done, std::size_t total);  // one caller at a time
  void finish();

 private:
  std::string what_;
  bool quiet_, terminal_, shown_ = false;
  std::chrono::steady_clock::time_point begin_, last_;
};

}  // namespace kiln::tools
