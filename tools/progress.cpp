#include "tools/progress.hpp"

#include <unistd.h>

#include <cstdio>

namespace kiln::tools {

namespace {
constexpr std::chrono::milliseconds patience{1000}, terminal_interval{100}, line_interval{5000};
constexpr std::size_t bar_width = 30;
}  // namespace

progress_bar::progress_bar(std::string what, const output_options& output)
    : what_(std::move(what)),
      quiet_(output.quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

void progress_bar::update(std::size_t done, std::size_t total) {
  auto now = std::chrono::steady_clock::now();
  if (quiet_ || total == 0 || now - begin_ < patience ||
      (shown_ && now - last_ < (terminal_ ? std::chrono::milliseconds(terminal_interval) : line_interval)))
    return;
  // Without a terminal, short work prints nothing. Lines are meant for logs of long work.
  if (!terminal_ && now - begin_ < line_interval) return;
  last_ = now;
  shown_ = true;
  double seconds = std::chrono::duration<double>(now - begin_).count(), rate = static_cast<double>(done) / seconds;
  double left = rate > 0 ? static_cast<double>(total - done) / rate : 0;
  if (terminal_) {
    std::size_t filled = bar_width * done / total;
    note("\r{} [{}{}] {}/{}  {:.1f}/s  {:.0f} s left ", what_, std::string(filled, '#'),
         std::string(bar_width - filled, ' '), done, total, rate, left);
  } else {
    note("{} {}/{}, {:.1f}/s, {:.0f} s left\n", what_, done, total, rate, left);
  }
  std::fflush(stderr);
}

void progress_bar::finish() {
  if (shown_ && terminal_) note("\r{:79}\r", "");
}

}  // namespace kiln::tools
