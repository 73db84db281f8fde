// enter_own_user: a job of the farm is not the user who runs the worker.
#include "jit/own_user.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>

#include "ir/error.hpp"
#include "test/support/scratch_folder.hpp"

using namespace kiln;

namespace {

constexpr int refused = 254;
constexpr uid_t another_user = 54321;

// Runs `what` in a child as a user of its own; it returns 0 or an errno value below 254. `start` becomes this user
// first.
int as_own_user(const std::filesystem::path& folder, const std::function<int()>& what, uid_t start = 0) {
  const pid_t child = fork();
  if (child == 0) {
    if (start != 0 && (setresgid(start, start, start) != 0 || setresuid(start, start, start) != 0)) _exit(refused);
    prctl(PR_SET_DUMPABLE, 1);  // as if started by that user: its files in /proc belong to it
    try {
      enter_own_user(folder);
    } catch (const error&) {
      _exit(refused);
    }
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

int send_datagram() {
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in peer{.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {}, .sin_zero = {}};
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return sendto(s, "x", 1, 0, reinterpret_cast<sockaddr*>(&peer), sizeof peer) < 0 ? errno : 0;
}

class own_user : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(job);
    std::ofstream(job / "input") << "input";
    std::ofstream(secret) << "secret";
    std::filesystem::permissions(secret, std::filesystem::perms(0600));
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0711));
  }
  kiln::testing::scratch_folder folder;
  const std::filesystem::path job = folder / "job", secret = folder / "secret";
};

class own_user_of_root : public own_user {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "skipped: only root can become another user";
    own_user::SetUp();
  }
};

TEST_F(own_user_of_root, is_nobody_else) {
  EXPECT_EQ(as_own_user(job, [] { return getuid() == 0x60000000 + uid_t(getpid()) || getuid() == 65534 ? 0 : 1; }), 0);
  EXPECT_EQ(as_own_user(job, [] { return geteuid() == getuid() && getegid() == getgid() && getgid() != 0 ? 0 : 1; }),
            0);
  EXPECT_EQ(as_own_user(job, [] { return getgroups(0, nullptr); }), 0);
  EXPECT_EQ(as_own_user(job, [] { return setresuid(0, 0, 0) != 0 ? errno : 0; }), EPERM);
}

TEST_F(own_user_of_root, has_its_folder_and_nothing_of_root) {
  EXPECT_EQ(as_own_user(job, [&] { return opened(job / "input", O_RDWR); }), 0);
  EXPECT_EQ(as_own_user(job, [&] { return opened(job / "result", O_RDWR | O_CREAT | O_EXCL); }), 0);
  EXPECT_EQ(as_own_user(job, [&] { return opened(secret, O_RDONLY); }), EACCES);
  EXPECT_EQ(as_own_user(job, [&] { return opened(folder / "new", O_RDWR | O_CREAT); }), EACCES);
}

TEST_F(own_user_of_root, links_become_copies_and_their_targets_stay_root_s) {
  std::filesystem::create_symlink(secret, job / "shared");
  EXPECT_EQ(as_own_user(job, [&] { return opened(job / "shared", O_RDONLY); }), 0);
  EXPECT_FALSE(std::filesystem::is_symlink(job / "shared"));
  struct stat status{};
  ASSERT_EQ(stat(secret.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0u);
  std::filesystem::create_symlink(folder / "none", job / "broken");
  EXPECT_EQ(as_own_user(job, [] { return 0; }), refused);
}

TEST_F(own_user_of_root, has_no_network) {
  const int sent = as_own_user(job, send_datagram);
  if (sent == 0) GTEST_SKIP() << "skipped: this system gives root no network namespace";
  EXPECT_EQ(sent, ENETUNREACH);
}

// Another user keeps its id and its files, without capabilities, and without a network where namespaces are allowed.
TEST_F(own_user_of_root, others_enter_a_namespace) {
  ASSERT_EQ(chown(job.c_str(), another_user, another_user), 0);
  EXPECT_EQ(as_own_user(job, [] { return getuid() == another_user ? 0 : 1; }, another_user), 0);
  EXPECT_EQ(as_own_user(job, [&] { return opened(job / "result", O_RDWR | O_CREAT); }, another_user), 0);
  EXPECT_EQ(as_own_user(job, [&] { return opened(secret, O_RDONLY); }, another_user), EACCES);
  EXPECT_EQ(as_own_user(job, [] { return chroot("/") != 0 ? errno : 0; }, another_user), EPERM);
  const int sent = as_own_user(job, send_datagram, another_user);
  EXPECT_TRUE(sent == ENETUNREACH || sent == 0) << sent;
}

}  // namespace

TEST_F(own_user_of_root, a_folder_that_others_cannot_reach_is_refused_before_any_job) {
  namespace fs = std::filesystem;
  const fs::path closed = folder / "closed", inside = closed / "inside";
  fs::create_directories(inside);
  fs::permissions(folder.path(), fs::perms(0755));
  EXPECT_NO_THROW(check_own_user_folder(inside));
  fs::permissions(closed, fs::perms(0700));
  EXPECT_THROW(check_own_user_folder(inside), error);
}
