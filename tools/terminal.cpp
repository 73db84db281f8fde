#include "tools/terminal.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace kiln::tools {
namespace {

class printable_formatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& to) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    spdlog::details::log_msg shown = message;
    shown.payload = text;
    pattern_.format(shown, to);
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<printable_formatter>(); }

 private:
  spdlog::pattern_formatter pattern_{"kiln: %l: %v"};
};

}  // namespace

bool claim_report() {
  static std::atomic_flag claimed;
  return !claimed.test_and_set();
}

void write_report(std::string_view kind, std::string_view message) {
  constexpr std::size_t most = 4000;  // names may be megabytes
  std::string line(message.substr(0, most));
  std::ranges::replace(line, '\n', ' ');
  write_constant(fmt::format("kiln: {}: {}{}\n", kind, printable(line), message.size() > most ? "..." : ""));
}

void write_constant(std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(STDERR_FILENO, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

void write_to(std::FILE* stream, std::string_view text) { std::fwrite(text.data(), 1, text.size(), stream); }

std::string json_text(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void start_log(bool verbose, bool quiet) {
  spdlog::set_default_logger(spdlog::stderr_color_st("kiln"));
  spdlog::set_formatter(std::make_unique<printable_formatter>());
  spdlog::set_level(verbose ? spdlog::level::debug : quiet ? spdlog::level::err : spdlog::level::warn);
}

}  // namespace kiln::tools
