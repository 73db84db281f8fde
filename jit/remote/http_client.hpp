// One HTTP connection to a server that may be slow, broken or hostile. Every call has one deadline, which includes
// looking up the name, connecting and TLS, and a bound on what is received. Redirects are not followed. Certificates
// are verified. Used by one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/remote/http_address.hpp"

namespace kiln {

struct http_limits {
  std::chrono::milliseconds connect{1000}, call{2000};  // `call` includes connecting
  std::size_t bytes = std::size_t{64} << 20;            // of an answer's body
};

struct http_answer {
  long status = 0;
  std::vector<std::byte> body = {};  // of status 200 only
};

class http_client {
 public:
  // Throws error{not_built_in} without libcurl.
  http_client(const http_address& address, const http_limits& limits);
  ~http_client();
  http_client(const http_client&) = delete;

  // `method` is GET, PUT or MKCOL, `name` is appended to the address's folder. Throws error{unreachable} if no whole
  // answer arrives in time, error{corrupted} if it exceeds the bound.
  http_answer call(const std::string& method, const std::string& name, std::span<const std::byte> body = {});

 private:
  struct state;
  const http_address address_;
  const http_limits limits_;
  std::unique_ptr<state> state_;
};

}  // namespace kiln
