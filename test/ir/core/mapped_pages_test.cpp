// Letting go of pages of mapped files: they leave the resident memory and can be read again; other memory is not
// touched.
#include "ir/mapped_pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace kiln::testing {
namespace {

constexpr std::size_t page = 4096, pages = 16;

std::size_t resident(std::span<const std::byte> bytes) {
  std::vector<unsigned char> there(bytes.size() / page);
  EXPECT_EQ(::mincore(const_cast<std::byte*>(bytes.data()), bytes.size(), there.data()), 0);
  std::size_t count = 0;
  for (unsigned char c : there) count += c & 1;
  return count;
}

// Anonymous memory loses its contents where a file's pages would come back, so it shows what was let go.
std::span<std::byte> filled_memory() {
  void* at = ::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  std::span bytes(static_cast<std::byte*>(at), pages * page);
  for (std::byte& b : bytes) b = std::byte{1};
  return bytes;
}

TEST(mapped_pages, whole_pages_of_a_registered_part_are_let_go) {
  const auto bytes = filled_memory();
  {
    const large_mapping known(bytes);
    let_go_of_pages(bytes.subspan(page / 2, 3 * page));  // two whole pages
    EXPECT_EQ(resident(bytes), pages - 2);
    EXPECT_EQ(bytes[page - 1], std::byte{1});
    EXPECT_EQ(bytes[3 * page], std::byte{1});
    let_go_of_pages(bytes.subspan(5 * page, 10));
    let_go_of_pages({});
    EXPECT_EQ(resident(bytes), pages - 2);
    let_go_of_pages(bytes);
    EXPECT_EQ(resident(bytes), 0u);
  }
  ::munmap(bytes.data(), bytes.size());
}

TEST(mapped_pages, other_memory_is_left_alone) {
  const auto bytes = filled_memory();
  let_go_of_pages(bytes);
  {
    const large_mapping half(bytes.first(bytes.size() / 2));
    let_go_of_pages(bytes);                            // extends over the end
    let_go_of_pages(bytes.subspan(bytes.size() / 2));  // begins there
    EXPECT_EQ(resident(bytes), pages);
  }
  let_go_of_pages(bytes.first(page));  // no longer registered
  EXPECT_EQ(resident(bytes), pages);
  ::munmap(bytes.data(), bytes.size());
}

}  // namespace
}  // namespace kiln::testing
