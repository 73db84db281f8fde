#include "jit/remote/reply_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace kiln {
namespace {

[[noreturn]] void nonsense(std::string_view why) {
  throw reply_error(fmt::format("its answer is not a Redis reply: {}", why), false);
}

std::int64_t integer(std::string_view digits) {
  std::int64_t value = 0;
  auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc{} || end != digits.data() + digits.size() || digits.empty()) nonsense("a number is malformed");
  return value;
}

}  // namespace

std::int64_t redis_value::as_number() const {
  if (kind == type::number) return number;
  std::int64_t value = 0;
  if (kind == type::text) std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

redis_value reply_reader::read(const reply_bounds& bounds) {
  bytes_left_ = bounds.bytes;
  elements_left_ = bounds.elements;
  return value(0);
}

redis_value reply_reader::value(int depth) {
  switch (next()) {
    case '+': return {redis_value::type::text, 0, line(), {}};
    case '-': return {redis_value::type::error, 0, line(), {}};
    case ':': return {redis_value::type::number, integer(line()), {}, {}};
    case '$': return bulk(integer(line()));
    case '*': return list(integer(line()), depth);
    default: nonsense("it begins with an unknown type");
  }
}

redis_value reply_reader::bulk(std::int64_t length) {
  if (length == -1) return {};
  if (length < 0) nonsense("a string has a negative length");
  redis_value result{redis_value::type::text, 0, exactly(static_cast<std::size_t>(length)), {}};
  expect_end_of_line();
  return result;
}

redis_value reply_reader::list(std::int64_t length, int depth) {
  if (length == -1) return {};
  if (length < 0) nonsense("a list has a negative length");
  if (depth >= max_depth) nonsense(fmt::format("lists are nested more than {} deep", max_depth));
  if (static_cast<std::uint64_t>(length) > elements_left_)
    throw reply_error("its answer has more elements than were asked for", true);
  elements_left_ -= static_cast<std::size_t>(length);
  redis_value result{redis_value::type::list, 0, {}, {}};
  for (std::int64_t i = 0; i < length; ++i) result.items.push_back(value(depth + 1));
  return result;
}

void reply_reader::spend(std::size_t bytes) {
  if (bytes > bytes_left_) throw reply_error("its answer has more bytes than were asked for", true);
  bytes_left_ -= bytes;
}

void reply_reader::fill() {
  begin_ = 0;
  end_ = 0;  // keeps the buffer empty if more_ throws
  end_ = more_(buffer_);
}

char reply_reader::next() {
  spend(1);
  if (empty()) fill();
  return buffer_[begin_++];
}

std::string reply_reader::line() {
  std::string result;
  for (char c = next(); c != '\r'; c = next()) {
    if (c == '\n') nonsense("a line ends without a carriage return");
    if (result.size() == longest_line) throw reply_error("its answer has a line that is too long", true);
    result += c;
  }
  if (next() != '\n') nonsense("a carriage return is not followed by a line feed");
  return result;
}

void reply_reader::expect_end_of_line() {
  if (next() != '\r' || next() != '\n') nonsense("a string is longer than it says");
}

std::string reply_reader::exactly(std::size_t bytes) {
  spend(bytes);
  std::string result;
  while (result.size() < bytes) {
    if (empty()) fill();
    std::size_t part = std::min(bytes - result.size(), end_ - begin_);
    result.append(buffer_.data() + begin_, part);
    begin_ += part;
  }
  return result;
}

}  // namespace kiln
