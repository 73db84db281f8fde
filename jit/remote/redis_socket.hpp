// A connected stream to a Redis server: a socket, or TLS over one (tls_stream.hpp). Every operation has a deadline,
// including name resolution. Used by one thread at a time. Throws error{unreachable} if the server cannot be reached,
// closes the connection, or does not accept or send bytes in time; and what tls_stream throws.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <utility>

#include "jit/remote/redis_address.hpp"
#include "jit/remote/tls_stream.hpp"

namespace kiln {

// Until when to wait. After a request to stop, waiting goes on for at most `last_moments`, so that an answer that is
// already on its way is still received.
struct wait_limit {
  static constexpr std::chrono::milliseconds last_moments{2000};
  std::chrono::steady_clock::time_point deadline;
  std::stop_token stop = {};
};

class redis_socket {
 public:
  static redis_socket connect(const redis_address& address, const wait_limit& limit);
  redis_socket(redis_socket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), tls_(std::move(other.tls_)) {}
  redis_socket& operator=(redis_socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(tls_, other.tls_);
    return *this;
  }
  ~redis_socket();

  void send(std::string_view bytes, const wait_limit& limit);
  // Whether the connection is open and no unread bytes have arrived.
  bool idle() const;
  // Receives at least one byte and returns how many.
  std::size_t receive(std::span<char> into, const wait_limit& limit);

 private:
  explicit redis_socket(int descriptor) : descriptor_(descriptor) {}
  explicit redis_socket(std::unique_ptr<tls_stream> tls) : tls_(std::move(tls)) {}
  int descriptor_ = -1;              // owned; -1 where there is a TLS stream
  std::unique_ptr<tls_stream> tls_;  // null for a plain socket
};

}  // namespace kiln
