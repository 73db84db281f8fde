// A connection to a Redis server: values and exceptions over a socket. It connects on the first call, and again after a
// connection has failed.
//
// The server is not trusted: a call ends after redis_limits::call whatever is sent and however slowly, and takes no
// more memory than the bounds that the caller gives for the reply.
//
// One thread at a time. Throws error{absent} where the server cannot be reached, does not answer in time or is still
// loading its data; error{usage} where it does not let us in; error{io} for a command that it refuses; error{corrupted}
// where it answers with something that is no reply, and oversized_reply for one beyond its bounds. A call that failed
// may or may not have had its effect, so callers use commands that may be repeated; redis_limits::patience repeats them
// here.
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
  std::chrono::milliseconds call{
      10000};  // from the first byte sent to the last received: connecting, logging in and a second try included
  std::chrono::milliseconds patience{0};  // how long a server that cannot be reached is tried again, with growing
                                          // pauses; each try takes `call` at most
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();  // of all calls together
  std::stop_token stop = {};  // ends patience, and soon after the wait for an answer
};

class redis_client {
 public:
  redis_client(redis_address address, redis_limits limits);
  ~redis_client();
  redis_client(const redis_client&) = delete;
  redis_client& operator=(const redis_client&) = delete;

  using command = std::vector<std::string_view>;
  redis_value call(const command& words, const reply_bounds& bounds = {});
  // Several commands in one round trip; the answers in their order, each within the bounds. Any that is an error
  // throws.
  std::vector<redis_value> call_all(const std::vector<command>& commands, const reply_bounds& bounds = {});
  // A script of Redis' own (Lua).
  redis_value evaluate(std::string_view script, const std::vector<std::string>& keys,
                       const std::vector<std::string>& arguments, const reply_bounds& bounds = {});
  // The same as call() and call_all(), with error replies as values.
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
