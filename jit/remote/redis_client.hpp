// A client of a Redis server: sends commands and returns replies as values. It connects on the first call, and
// reconnects after the connection has failed.
//
// The server is not trusted: a call ends after redis_limits::call, whatever the server sends and however slowly, and
// uses no more memory than the caller's bounds on the reply allow.
//
// Used by one thread at a time. Throws error{unreachable} if the server cannot be reached, does not answer in time or
// is still loading its data; error{usage} if it rejects the login; error{io} for a command that it refuses;
// error{corrupted} for an answer that is not a valid reply, and oversized_reply for one beyond the bounds. A call that
// failed may or may not have taken effect, so callers use commands that may be repeated. With redis_limits::patience
// the client repeats them itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.hpp"
#include "jit/remote/redis_address.hpp"
#include "jit/remote/redis_value.hpp"
#include "jit/remote/reply_reader.hpp"

namespace kiln {

class oversized_reply : public error {
 public:
  explicit oversized_reply(std::string message) : error(error_kind::corrupted, std::move(message)) {}
};

struct redis_limits {
  std::chrono::milliseconds connect{2000};
  // From the start of the call to the last byte received, including connecting, logging in and a second attempt.
  std::chrono::milliseconds call{10000};
  // How long to retry while the server cannot be reached, with growing pauses. Each attempt takes at most `call`.
  std::chrono::milliseconds patience{0};
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();  // deadline of all calls
  std::stop_token stop = {};  // a request ends retrying, and shortly afterwards waiting for an answer
};

class redis_client {
 public:
  redis_client(redis_address address, redis_limits limits);
  ~redis_client();
  redis_client(const redis_client&) = delete;
  redis_client& operator=(const redis_client&) = delete;

  using command = std::vector<std::string_view>;
  redis_value call(const command& words, const reply_bounds& bounds = {});
  // Sends several commands in one round trip and returns the answers in the same order. The bounds apply to each
  // answer. Throws if any answer is an error.
  std::vector<redis_value> call_all(const std::vector<command>& commands, const reply_bounds& bounds = {});
  // Runs a Lua script on the server (EVAL).
  redis_value evaluate(std::string_view script, const std::vector<std::string>& keys,
                       const std::vector<std::string>& arguments, const reply_bounds& bounds = {});
  // Like call_all() and call(), but return error replies as values instead of throwing.
  std::vector<redis_value> ask_all(const std::vector<command>& commands, const reply_bounds& bounds = {}) {
    return exchange(commands, bounds);
  }
  redis_value ask(const command& words, const reply_bounds& bounds = {});

  const redis_address& address() const { return address_; }

 private:
  struct connection;
  using time_point = std::chrono::steady_clock::time_point;
  std::vector<redis_value> exchange(const std::vector<command>& commands, const reply_bounds& bounds);
  std::vector<redis_value> exchange_by(time_point deadline, const std::vector<command>& commands,
                                       const reply_bounds& bounds);
  std::vector<redis_value> talk(const std::vector<command>& commands, const reply_bounds& bounds);
  void connect(time_point deadline);

  redis_address address_;
  redis_limits limits_;
  std::unique_ptr<connection> connection_;
};

}  // namespace kiln
