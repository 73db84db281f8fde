// A server on the loopback interface whose behaviour a test defines: each connection runs `talk` on a separate thread.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "jit/remote/redis_address.hpp"

namespace kiln::testing {

class lying_server {
 public:
  // One connection, passed to `talk`.
  class peer {
   public:
    peer(int socket, const std::atomic<bool>& ending) : socket_(socket), ending_(ending) {}
    // Returns the words of the client's next command; empty if the connection ends.
    std::vector<std::string> next() {
      std::vector<std::string> words;
      auto count = number('*');
      for (long i = 0; count && i < *count; ++i) {
        auto size = number('$');
        auto word = size ? take(static_cast<std::size_t>(*size) + 2) : std::nullopt;
        if (!word) return {};
        words.push_back(word->substr(0, word->size() - 2));
      }
      return words;
    }
    // Returns the head of the client's next HTTP request, without its body; empty if the connection ends.
    std::string request() {
      std::size_t at;
      while ((at = received_.find("\r\n\r\n")) == std::string::npos)
        if (!fill()) return {};
      return *take(at + 4);
    }
    // Takes the body that follows a head; returns whether it came.
    bool body(std::size_t bytes) { return take(bytes).has_value(); }
    // Returns false if the client has disconnected or the server is stopping.
    bool say(std::string_view text) {
      while (!text.empty() && !ending_) {
        ssize_t n = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
        if (n <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(n));
      }
      return !ending_;
    }
    void sleep(std::chrono::milliseconds time) {
      for (auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end && !ending_;)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }

   private:
    bool fill() {
      char part[4096];
      ssize_t n = ::recv(socket_, part, sizeof part, 0);
      if (n > 0) received_.append(part, static_cast<std::size_t>(n));
      return n > 0;
    }
    std::optional<std::string> take(std::size_t bytes) {
      while (received_.size() < bytes)
        if (!fill()) return std::nullopt;
      std::string result = received_.substr(0, bytes);
      received_.erase(0, bytes);
      return result;
    }
    std::optional<long> number(char type) {
      std::size_t at;
      while ((at = received_.find("\r\n")) == std::string::npos)
        if (!fill()) return std::nullopt;
      auto line = take(at + 2);
      return line && (*line)[0] == type ? std::optional(std::stol(line->substr(1))) : std::nullopt;
    }

    int socket_;
    const std::atomic<bool>& ending_;
    std::string received_;
  };

  explicit lying_server(std::function<void(peer&)> talk)
      : talk_(std::move(talk)), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket_, 64) != 0)
      throw std::runtime_error("no server can be made");
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~lying_server() {
    ending_ = true;
    ::shutdown(socket_, SHUT_RDWR);
    accepting_.join();
    for (int s : open_) ::shutdown(s, SHUT_RDWR);
    for (std::thread& t : talking_) t.join();
    for (int s : open_) ::close(s);
    ::close(socket_);
  }
  lying_server(const lying_server&) = delete;

  redis_address address() const { return {.host = "127.0.0.1", .port = port_}; }
  int port() const { return port_; }
  int connections() const { return connections_; }

 private:
  void accept_all() {
    for (int s; (s = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      ++connections_;
      open_.push_back(s);
      talking_.emplace_back([this, s] {
        peer p(s, ending_);
        talk_(p);
        ::shutdown(s, SHUT_RDWR);
      });
    }
  }

  std::function<void(peer&)> talk_;
  int socket_, port_ = 0;
  std::atomic<bool> ending_{false};
  std::atomic<int> connections_{0};
  std::thread accepting_;
  std::vector<std::thread> talking_;
  std::vector<int> open_;
};

// Answers the greeting as Redis does and every other command with `answer`, which may send any amount and returns
// whether to continue.
inline std::function<void(lying_server::peer&)> after_greeting(
    std::function<bool(lying_server::peer&, const std::vector<std::string>&)> answer) {
  return [answer = std::move(answer)](lying_server::peer& peer) {
    for (auto words = peer.next(); !words.empty(); words = peer.next())
      if (!(words[0] == "SELECT" || words[0] == "AUTH" ? peer.say("+OK\r\n") : answer(peer, words))) return;
  };
}

}  // namespace kiln::testing
