// Parsing replies of the Redis protocol: which are read, which are refused, and that no memory is allocated for bytes
// that are only announced.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "jit/remote/reply_reader.hpp"

namespace kiln::test {
namespace {

// Reads `text` in parts of `part` bytes.
struct text_source {
  std::string text;
  std::size_t part = 1 << 16, at = 0;
  std::size_t operator()(std::span<char> into) {
    if (at == text.size()) throw std::out_of_range("the server has said all");
    std::size_t n = std::min({part, into.size(), text.size() - at});
    std::copy_n(text.data() + at, n, into.data());
    at += n;
    return n;
  }
};

redis_value read(const std::string& text, const reply_bounds& bounds = {}, std::size_t part = 1 << 16) {
  return reply_reader(text_source{text, part}).read(bounds);
}

// Returns whether the reply is refused, and if so whether as too large.
std::string refusal(const std::string& text, const reply_bounds& bounds = {}) {
  try {
    read(text, bounds);
  } catch (const reply_error& e) {
    return e.too_large() ? "too large" : "nonsense";
  } catch (const std::out_of_range&) {
    return "waits";
  }
  return "";
}

TEST(reply_reader, reads_every_type_in_parts_of_any_size) {
  const std::string text = "*6\r\n+OK\r\n-ERR no\r\n:-42\r\n$5\r\na\0\r\nb\r\n*1\r\n$-1\r\n*-1\r\n";
  const std::string binary(text.data(), text.size());
  std::string whole = "*6\r\n+OK\r\n-ERR no\r\n:-42\r\n$5\r\na";
  whole += std::string("\0\r\nb\r\n", 6) + "*1\r\n$-1\r\n*-1\r\n";
  for (std::size_t part = 1; part <= whole.size(); ++part) {
    redis_value v = read(whole, {}, part);
    ASSERT_EQ(v.items.size(), 6u);
    EXPECT_EQ(v.items[0].text, "OK");
    EXPECT_EQ(v.items[1].kind, redis_value::type::error);
    EXPECT_EQ(v.items[2].number, -42);
    EXPECT_EQ(v.items[3].text, std::string("a\0\r\nb", 5));
    EXPECT_TRUE(v.items[4].items.at(0).is_null());
    EXPECT_TRUE(v.items[5].is_null());
  }
}

TEST(reply_reader, refuses_what_breaks_the_protocol) {
  for (const char* bad :
       {"x\r\n", "\r\n", ":\r\n", ":1x\r\n", ":99999999999999999999\r\n", "$-2\r\nx", "$1\r\nab\r\n", "$1\r\na\n\n",
        "*-5\r\n", "+a\nb\r\n", "+a\rb", "*1\r\n%1\r\n", "$+1\r\na\r\n", "$ 1\r\na\r\n", "$9223372036854775808\r\n"})
    EXPECT_EQ(refusal(bad), "nonsense") << bad;
}

TEST(reply_reader, refuses_what_is_larger_than_was_asked_for_before_it_arrives) {
  for (const char* bad : {"$9000000000000\r\n", "$9223372036854775807\r\n", "$1048576\r\n", "*9223372036854775807\r\n",
                          "*4294967295\r\n", "*16385\r\n"})
    EXPECT_EQ(refusal(bad), "too large") << bad;
  const reply_bounds small{.bytes = 20, .elements = 3};
  EXPECT_EQ(refusal("$10\r\n0123456789\r\n", small), "");
  EXPECT_EQ(refusal("$14\r\n01234567890123\r\n", small), "too large");
  EXPECT_EQ(refusal("+" + std::string(30, 'x'), small), "too large") << "a line without end";
  const std::string line(reply_reader::longest_line, 'x');
  EXPECT_EQ(refusal("-" + line + "\r\n"), "");
  EXPECT_EQ(refusal("-" + line + "x\r\n", {.bytes = std::size_t{64} << 20}), "too large");
  EXPECT_EQ(refusal("*2\r\n*1\r\n:1\r\n:2\r\n", small), "");
  EXPECT_EQ(refusal("*2\r\n*2\r\n", small), "too large") << "elements of all lists together";
  EXPECT_EQ(refusal("*1\r\n*1\r\n*1\r\n*1\r\n", small), "too large");
}

TEST(reply_reader, nesting_is_bounded) {
  auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "*1\r\n";
    return text + ":1\r\n";
  };
  EXPECT_EQ(refusal(nested(reply_reader::max_depth)), "");
  EXPECT_EQ(refusal(nested(reply_reader::max_depth + 1)), "nonsense");
  EXPECT_EQ(refusal(nested(100'000)), "nonsense");
}

TEST(reply_reader, any_bytes_end) {
  std::minstd_rand random(7);
  const std::string alphabet = "*$:+-\r\n0123456789\r\n\r\nx";
  for (int n = 0; n < 20000; ++n) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += alphabet[random() % alphabet.size()];
    refusal(text);
  }
}

}  // namespace
}  // namespace kiln::test
