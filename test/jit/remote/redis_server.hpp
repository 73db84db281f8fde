// Starts a real Redis server for a test, on a free loopback port and with its data in a temporary folder. The
// destructor stops it.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ir/error.hpp"
#include "jit/remote/redis_client.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {

inline int free_port() {
  int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(s, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(s, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(s);
  return ntohs(address.sin_port);
}

class redis_server {
 public:
  static constexpr const char* executable = "/usr/bin/redis-server";
  static bool installed() { return ::access(executable, X_OK) == 0; }

  explicit redis_server(std::vector<std::string> more = {}) : port_(free_port()), more_(std::move(more)) { start(); }
  ~redis_server() { stop(SIGKILL); }

  void start() {
    std::vector<std::string> words{
        executable, "--port", std::to_string(port_), "--bind", "127.0.0.1",     "--dir", folder_.path().string(),
        "--save",   "",       "--appendonly",        "yes",    "--appendfsync", "always"};
    words.insert(words.end(), more_.begin(), more_.end());
    std::vector<char*> pointers;
    for (std::string& w : words) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, (folder_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    int failed = posix_spawn(&process_, executable, &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) throw std::runtime_error("the Redis server cannot be started");
    // Waits until the server listens. With a password it refuses the connection, which is also an answer.
    try {
      redis_client(address(), {.patience = std::chrono::seconds(20)}).call({"PING"});
    } catch (const error& e) {
      if (e.kind() != error_kind::usage && e.kind() != error_kind::io) throw;
    }
  }
  void stop(int signal) {
    if (process_ <= 0) return;
    ::kill(process_, signal);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  redis_address address() const { return {.host = "127.0.0.1", .port = port_}; }

 private:
  int port_;
  std::vector<std::string> more_;
  scratch_folder folder_;
  pid_t process_ = -1;
};

// A fixture with a server. Without an installed Redis, the test prints that and is skipped.
class with_redis : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!redis_server::installed())
      GTEST_SKIP() << "skipped: no " << redis_server::executable << " (scripts/setup.sh installs it)";
    server.emplace();
  }
  std::optional<redis_server> server;
};

}  // namespace kiln::testing
