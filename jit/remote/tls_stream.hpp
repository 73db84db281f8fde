// A TLS connection to a server, made by libcurl (curl_library.hpp), which verifies the server's certificate and its
// host name, from TLS 1.2 on. No proxy of the environment is used. Used by one thread at a time. The constructor waits
// until its deadline; send() and receive() do not wait. All throw error{unreachable} if the connection fails or is
// closed; the constructor throws error{usage} if a certificate is refused or a file of certificates cannot be used, and
// error{not_built_in} if this machine has no libcurl.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "jit/remote/redis_address.hpp"

namespace kiln {

class tls_stream {
 public:
  // Connects, and completes the TLS handshake, by `deadline`.
  tls_stream(const redis_address& address, std::chrono::steady_clock::time_point deadline);
  ~tls_stream();
  tls_stream(const tls_stream&) = delete;
  tls_stream& operator=(const tls_stream&) = delete;

  // How many of the bytes were taken; nothing if the caller must wait until the descriptor can be written.
  std::optional<std::size_t> send(std::string_view bytes);
  // How many bytes arrived, 0 at the end of the stream; nothing if the caller must wait until it can be read. Call it
  // before waiting, because bytes may have been received and decrypted already.
  std::optional<std::size_t> receive(std::span<char> into);
  int descriptor() const { return descriptor_; }

 private:
  struct state;
  std::unique_ptr<state> state_;
  int descriptor_ = -1;
};

}  // namespace kiln
