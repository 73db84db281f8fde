#include "jit/process_deadline.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

namespace kiln {

std::optional<std::chrono::nanoseconds> time_without_processor(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/schedstat";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  unsigned long long ran = 0, waited = 0;
  if (!file || std::fscanf(file.get(), "%llu %llu", &ran, &waited) != 2) return std::nullopt;
  return std::chrono::nanoseconds(waited);
}

process_deadline::process_deadline(pid_t process, std::chrono::milliseconds limit)
    : process_(process),
      begin_(clock::now()),
      end_(begin_ + limit),
      limit_(limit),
      waited_before_(time_without_processor(process)) {}

bool process_deadline::passed() {
  const auto now = clock::now();
  if (now < end_) return false;
  const auto waited = waited_before_ ? time_without_processor(process_) : std::nullopt;
  if (!waited) return true;
  // The system adds a wait when it is over, so the last one may be missing.
  const auto longer = std::max(*waited - *waited_before_, std::chrono::nanoseconds(0));
  end_ = std::min(begin_ + limit_ * patience, begin_ + limit_ + longer);
  return now >= end_;
}

}  // namespace kiln
