#include "ir/mapped_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>

namespace kiln {
namespace {

// The mapped ranges, by their begin.
struct registry {
  std::mutex mutex;
  std::map<const std::byte*, const std::byte*> ends;
};

registry& mappings() {
  static registry all;
  return all;
}

}  // namespace

large_mapping::large_mapping(std::span<const std::byte> bytes) : begin_(bytes.data()) {
  std::lock_guard lock(mappings().mutex);
  mappings().ends[begin_] = begin_ + bytes.size();
}

large_mapping::~large_mapping() {
  std::lock_guard lock(mappings().mutex);
  mappings().ends.erase(begin_);
}

void let_go_of_pages(std::span<const std::byte> part) {
  if (part.empty()) return;
  const std::byte* last = part.data() + part.size();
  std::lock_guard lock(mappings().mutex);
  auto after = mappings().ends.upper_bound(part.data());
  if (after == mappings().ends.begin() || last > std::prev(after)->second) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)),
             begin = reinterpret_cast<std::uintptr_t>(part.data()), first = (begin + page - 1) / page * page,
             end = reinterpret_cast<std::uintptr_t>(last) / page * page;
  // Only a hint: failure costs only memory.
  if (first < end) ::madvise(const_cast<std::byte*>(part.data()) + (first - begin), end - first, MADV_DONTNEED);
}

}  // namespace kiln
