// Reads replies of the Redis protocol (RESP2) from a server that may lie: about lengths, counts and nesting. The caller
// says how large a reply may be; a header that announces more ends the reading before anything is allocated for it, and
// a string grows only with the bytes that have arrived.
//
// One thread at a time. Throws reply_error; after that the rest of the stream has no meaning, so the connection must be
// closed.
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
  std::size_t bytes = std::size_t{1} << 20;     // of the whole reply, headers included
  std::size_t elements = std::size_t{1} << 14;  // of all its lists together
};

class reply_error : public std::runtime_error {
 public:
  reply_error(const std::string& what, bool too_large) : std::runtime_error(what), too_large_(too_large) {}
  bool too_large() const { return too_large_; }  // a reply beyond the bounds; otherwise one that breaks the protocol

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
  // Whether the server has sent nothing beyond the replies that were read.
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
  std::size_t begin_ = 0, end_ = 0;  // of what has arrived and was not read
  std::size_t bytes_left_ = 0, elements_left_ = 0;
};

}  // namespace kiln
