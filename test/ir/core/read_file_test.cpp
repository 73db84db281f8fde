#include "ir/read_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "ir/error.hpp"
#include "test/ir/container/forge.hpp"

namespace kiln::testing {
namespace {

error_kind refusal(const std::filesystem::path& file, std::size_t limit) {
  try {
    read_file(file, limit);
  } catch (const error& e) {
    return e.kind();
  }
  return error_kind::internal;
}

TEST(read_file, gives_the_whole_file) {
  const scratch_folder folder;
  const std::string text(200'000, 'x');
  std::ofstream(folder / "text") << text;
  EXPECT_EQ(read_file(folder / "text", text.size()), text);
  std::ofstream(folder / "empty").close();
  EXPECT_EQ(read_file(folder / "empty", 0), "");
}

TEST(read_file, refuses_what_is_larger_than_its_limit) {
  const scratch_folder folder;
  std::ofstream(folder / "text") << "1234";
  EXPECT_EQ(refusal(folder / "text", 3), error_kind::unsupported);
  EXPECT_EQ(refusal("/dev/zero", 100'000), error_kind::unsupported);  // has no end
}

TEST(read_file, waits_for_the_writer_of_a_pipe) {
  const scratch_folder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(folder / "pipe", 100), error_kind::missing_file);  // nobody writes
  std::thread writer([&] {
    std::ofstream to(folder / "pipe");
    to << "first ";
    to.flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    to << "second";
  });
  EXPECT_EQ(read_file(folder / "pipe", 100), "first second");
  writer.join();
}

TEST(read_file, says_what_cannot_be_read) {
  const scratch_folder folder;
  EXPECT_EQ(refusal(folder / "absent", 100), error_kind::missing_file);
  EXPECT_EQ(refusal(folder / ".", 100), error_kind::missing_file);
  EXPECT_EQ(refusal("/proc/self/mem", 100), error_kind::missing_file);  // its first page is not mapped
}

}  // namespace
}  // namespace kiln::testing
