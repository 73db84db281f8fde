// Reads replies of the Redis protocol (RESP2). The server may lie about lengths, counts and nesting. The caller bounds
// the size of a reply; reading fails before memory is allocated for a header that announces more, and a string grows
// only with the bytes that have arrived.
//
// Used by one thread at a time. Throws reply_error. After that the position in the stream is undefined, so the
// connection must be closed.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>

#include "jit/remote/redis_value.hpp"

namespace kiln {

struct reply_bounds {
  std::size_t bytes = std::size_t{1} << 20;     // of the whole reply, including headers
  std::size_t elements = std::size_t{1} << 14;  // total over all lists of the reply
};

class reply_error : public std::runtime_error {
 public:
  reply_error(const std::string& what, bool too_large) : std::runtime_error(what), too_large_(too_large) {}
  bool too_large() const { return too_large_; }  // true: the reply exceeds the bounds; false: it violates the protocol

 private:
  bool too_large_;
};

class reply_reader {
 public:
  static constexpr int max_depth = 8;  // of nested lists
  static constexpr std::size_t longest_line = std::size_t{1} << 16;

  // `more` fills the start of the buffer and returns how many bytes it wrote, at least one; it may throw.
  explicit reply_reader(std::function<std::size_t(std::span<char>)> more) : more_(std::move(more)) {}

  redis_value read(const reply_bounds& bounds);
  // Whether no bytes are left in the buffer after the replies that were read.
  bool empty() const { return begin_ == end_; }

 private:
  redis_value value(int depth);
  redis_value bulk(std::int64_t length);
  redis_value list(std::int64_t length, int depth);
  char next();
  std::string line();
  std::string exactly(std::size_t bytes);
  void expect_end_of_line();
  void spend(std::size_t bytes);
  void fill();

  std::function<std::size_t(std::span<char>)> more_;
  std::array<char, 1 << 16> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // range of unread bytes in buffer_
  std::size_t bytes_left_ = 0, elements_left_ = 0;
};

}  // namespace kiln
