// A connection to a Redis server: hiredis behind values and exceptions. It connects on the first call, and again after a connection has failed.
//
// One thread at a time. Throws error{absent} where the server cannot be reached, does not answer in time or is still loading its data; error{usage}
// where it does not let us in; error{io} for a command that it refuses. A call that failed may or may not have had its effect, so callers use commands
// that may be repeated; redis_limits::patience repeats them here.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "jit/remote/redis_address.hpp"

struct redisContext;

namespace kiln {

struct redis_value {
  enum class type { null, number, text, list, error };
  type kind = type::null;
  std::int64_t number = 0;
  std::string text;  // binary; an error's words
  std::vector<redis_value> items;

  bool is_null() const { return kind == type::null; }
  // A number that came as a number or as text; 0 for null.
  std::int64_t as_number() const;
};

struct redis_limits {
  std::chrono::milliseconds connect{2000}, call{10000};
  std::chrono::milliseconds patience{0};  // how long a server that cannot be reached is tried again, with growing pauses
  std::stop_token stop = {};              // ends patience
};

class redis_client {
 public:
  redis_client(redis_address address, redis_limits limits);
  ~redis_client();
  redis_client(const redis_client&) = delete;
  redis_client& operator=(const redis_client&) = delete;

  using command = std::vector<std::string_view>;
  redis_value call(const command& words);
  // Several commands in one round trip; the answers in their order. Any that is an error throws.
  std::vector<redis_value> call_all(const std::vector<command>& commands);
  // A script of Redis' own (Lua), which has all of its effects or none.
  redis_value evaluate(std::string_view script, const std::vector<std::string>& keys, const std::vector<std::string>& arguments);
  // The same as call(), with an error reply as a value.
  redis_value ask(const command& words);

  const redis_address& address() const { return address_; }

 private:
  struct closer {
    void operator()(redisContext* c) const;
  };
  std::vector<redis_value> exchange(const std::vector<command>& commands);
  std::vector<redis_value> exchange_once(const std::vector<command>& commands);
  void connect();
  [[noreturn]] void fail(std::string_view what);

  redis_address address_;
  redis_limits limits_;
  std::unique_ptr<redisContext, closer> context_;
};

}  // namespace kiln
