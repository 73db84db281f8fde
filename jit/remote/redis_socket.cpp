#include "jit/remote/redis_socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "ir/error.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_for_stop{100};

[[noreturn]] void unreachable(std::string_view why) { throw error(error_kind::unreachable, std::string(why)); }
[[noreturn]] void unreachable(int code) { unreachable(std::strerror(code)); }

struct endpoint {
  sockaddr_storage address{};
  socklen_t size = 0;
  int family() const { return address.ss_family; }
};

struct resolution {
  int code = 0;
  std::vector<endpoint> found;
};

resolution resolve_now(const std::string& host, int port, int flags) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  resolution result;
  result.code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  for (const addrinfo* a = result.code == 0 ? list : nullptr; a; a = a->ai_next) {
    endpoint& e = result.found.emplace_back();
    e.size = a->ai_addrlen;
    std::memcpy(&e.address, a->ai_addr, e.size);
  }
  return result;
}

// getaddrinfo has no deadline, so a detached thread calls it. If that takes too long, we stop waiting and the thread
// ends later.
std::vector<endpoint> resolve(const std::string& host, int port, clock::time_point deadline) {
  if (auto numeric = resolve_now(host, port, AI_NUMERICHOST | AI_NUMERICSERV); numeric.code == 0) return numeric.found;
  struct shared_state {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<resolution> result;
  };
  auto state = std::make_shared<shared_state>();
  std::thread([state, host, port] {
    resolution r = resolve_now(host, port, AI_NUMERICSERV);
    std::lock_guard lock(state->mutex);
    state->result = std::move(r);
    state->done.notify_all();
  }).detach();
  std::unique_lock lock(state->mutex);
  if (!state->done.wait_until(lock, deadline, [&] { return state->result.has_value(); }))
    unreachable("its name was not resolved in time");
  if (state->result->code != 0) unreachable(gai_strerror(state->result->code));
  return state->result->found;
}

endpoint unix_endpoint(const std::string& path) {
  endpoint e;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) unreachable("the socket's path is too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  e.size = sizeof address;
  std::memcpy(&e.address, &address, sizeof address);
  return e;
}

void wait_for(int descriptor, short events, const wait_limit& limit) {
  auto deadline = limit.deadline;
  for (bool stopping = false;;) {
    if (!stopping && limit.stop.stop_requested()) {
      stopping = true;
      deadline = std::min(deadline, clock::now() + wait_limit::last_moments);
    }
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
    if (left.count() <= 0) unreachable("it takes longer than it may");
    if (!stopping && limit.stop.stop_possible()) left = std::min(left, look_for_stop);
    pollfd wanted{descriptor, events, 0};
    int ready = poll(&wanted, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) unreachable(errno);
  }
}

}  // namespace

redis_socket::~redis_socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

redis_socket redis_socket::connect(const redis_address& address, const wait_limit& limit) {
  if (address.tls) return redis_socket(std::make_unique<tls_stream>(address, limit.deadline));
  auto candidates = address.socket.empty() ? resolve(address.host, address.port, limit.deadline)
                                           : std::vector{unix_endpoint(address.socket)};
  int why = EADDRNOTAVAIL;
  for (const endpoint& e : candidates) {
    redis_socket s(::socket(e.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (s.descriptor_ < 0) unreachable(errno);
    if (::connect(s.descriptor_, reinterpret_cast<const sockaddr*>(&e.address), e.size) != 0) {
      why = errno;
      if (why != EINPROGRESS) continue;
      wait_for(s.descriptor_, POLLOUT, limit);
      socklen_t size = sizeof why;
      getsockopt(s.descriptor_, SOL_SOCKET, SO_ERROR, &why, &size);
      if (why != 0) continue;
    }
    if (e.family() != AF_UNIX) {
      int on = 1;
      setsockopt(s.descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      setsockopt(s.descriptor_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    return s;
  }
  unreachable(why);
}

void redis_socket::send(std::string_view bytes, const wait_limit& limit) {
  while (tls_ && !bytes.empty()) {
    if (auto n = tls_->send(bytes)) bytes.remove_prefix(*n);
    else wait_for(tls_->descriptor(), POLLOUT, limit);
    if (clock::now() > limit.deadline) unreachable("it takes longer than it may");
  }
  while (!bytes.empty()) {
    ssize_t n = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    else if (errno == EAGAIN) wait_for(descriptor_, POLLOUT, limit);
    else if (errno != EINTR) unreachable(errno);
    if (clock::now() > limit.deadline) unreachable("it takes longer than it may");
  }
}

bool redis_socket::idle() const {
  char one;
  if (tls_) try {
      return !tls_->receive(std::span(&one, 1));
    } catch (const error&) {
      return false;
    }
  return ::recv(descriptor_, &one, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

std::size_t redis_socket::receive(std::span<char> into, const wait_limit& limit) {
  while (tls_) {
    if (auto n = tls_->receive(into)) {
      if (*n > 0) return *n;
      unreachable("it closes the connection");
    }
    wait_for(tls_->descriptor(), POLLIN, limit);
  }
  for (;;) {
    wait_for(descriptor_, POLLIN, limit);
    ssize_t n = ::recv(descriptor_, into.data(), into.size(), 0);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n == 0) unreachable("it closes the connection");
    if (errno != EAGAIN && errno != EINTR) unreachable(errno);
  }
}

}  // namespace kiln
