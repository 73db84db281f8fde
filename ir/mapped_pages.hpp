// Pages of large mapped files in this process's resident memory. Whoever has read a part for the last time lets it go;
// the next reader maps its pages again (25 ms per GB while the system has them in its cache). Any thread.
#pragma once

#include <cstddef>
#include <span>

namespace kiln {

// Registers a file that was mapped to be read only, until the destructor, which unmaps nothing.
class large_mapping {
 public:
  explicit large_mapping(std::span<const std::byte> bytes);
  ~large_mapping();
  large_mapping(const large_mapping&) = delete;
  large_mapping& operator=(const large_mapping&) = delete;

 private:
  const std::byte* begin_;
};

// Takes the whole pages of `part` out of the process's resident memory if it lies in a large mapping; otherwise does
// nothing.
void let_go_of_pages(std::span<const std::byte> part);

}  // namespace kiln
