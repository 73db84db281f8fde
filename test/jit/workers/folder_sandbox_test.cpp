// enter_folder_sandbox: what a job of the farm can still do.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include "jit/sandbox.hpp"
#include "test/support/scratch_folder.hpp"

using namespace kiln;

namespace {

// Runs `what` in a confined child; it returns 0 or an errno value below 256.
int confined(const std::filesystem::path& folder, const std::function<int()>& what) {
  const pid_t child = fork();
  if (child == 0) {
    enter_folder_sandbox(folder.c_str());
    _exit(what());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int opened(const std::filesystem::path& file, int flags) {
  const int descriptor = open(file.c_str(), flags | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  close(descriptor);
  return 0;
}

TEST(folder_sandbox, changes_files_in_its_folder_only) {
  const sandbox_state sandbox = available_sandbox();
  if (sandbox.landlock < 3) GTEST_SKIP() << "skipped: Landlock 3 is needed: " << sandbox.describe();
  const kiln::testing::scratch_folder folder;
  const std::filesystem::path inside = folder / "job", outside = folder / "outside";
  std::filesystem::create_directory(inside);
  std::ofstream(outside) << "text";
  EXPECT_EQ(confined(inside, [&] { return opened(inside / "new", O_RDWR | O_CREAT); }), 0);
  EXPECT_EQ(confined(inside, [&] { return rename((inside / "new").c_str(), (inside / "moved").c_str()) ? errno : 0; }),
            0);
  EXPECT_EQ(confined(inside, [&] { return unlink((inside / "moved").c_str()) ? errno : 0; }), 0);
  EXPECT_EQ(confined(inside, [&] { return opened(outside, O_RDONLY); }), 0);
  EXPECT_EQ(confined(inside, [&] { return opened("/dev/null", O_WRONLY); }), 0);
  EXPECT_EQ(confined(inside, [&] { return opened(outside, O_WRONLY); }), EACCES);
  EXPECT_EQ(confined(inside, [&] { return opened(folder / "new", O_RDWR | O_CREAT); }), EACCES);
  EXPECT_EQ(confined(inside, [&] { return unlink(outside.c_str()) ? errno : 0; }), EACCES);
  EXPECT_EQ(confined(inside, [&] { return mkdir((folder / "new").c_str(), 0700) ? errno : 0; }), EACCES);
  EXPECT_EQ(confined(inside, [&] { return symlink("/", (folder / "link").c_str()) ? errno : 0; }), EACCES);
}

TEST(folder_sandbox, has_no_network_and_no_signals) {
  const sandbox_state sandbox = available_sandbox();
  if (sandbox.landlock < 6) GTEST_SKIP() << "skipped: Landlock 6 is needed: " << sandbox.describe();
  const kiln::testing::scratch_folder folder;
  const pid_t self = getpid();
  EXPECT_EQ(confined(folder / ".", [&] { return kill(self, 0) ? errno : 0; }), EPERM);
  EXPECT_EQ(confined(folder / ".",
                     [] {
                       const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                       sockaddr_in peer{.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {}, .sin_zero = {}};
                       peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
                       return connect(s, reinterpret_cast<sockaddr*>(&peer), sizeof peer) ? errno : 0;
                     }),
            EACCES);
}

}  // namespace
