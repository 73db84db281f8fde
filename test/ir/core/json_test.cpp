#include "ir/json.hpp"

#include <gtest/gtest.h>

#include "ir/error.hpp"

using namespace kiln;

namespace {

std::string repeated(std::string_view text, std::size_t count) {
  std::string result;
  for (std::size_t i = 0; i < count; ++i) result += text;
  return result;
}

std::string nested(std::size_t depth) { return repeated("[", depth) + repeated("]", depth); }

bool refused(const std::string& text, const json_limits& limits = {}) {
  try {
    parse_json(text, limits);
    return false;
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::corrupted) << e.what();
    return true;
  }
}

}  // namespace

TEST(json, gives_the_document_in_its_order) {
  EXPECT_EQ(parse_json(R"({"b": [1, 2.5, "x"], "a": null})").dump(), R"({"b":[1,2.5,"x"],"a":null})");
}

TEST(json, what_is_no_json_is_corrupted) {
  for (const char* text : {"", "{", "[1,", "nul", "\"\x1b\"", "\"a", "]", "}}", "{\"a\" 1}", "\xff"})
    EXPECT_TRUE(refused(text)) << text;
}

TEST(json, problems_are_told_in_our_words) {
  auto problem = [](auto&& run) -> std::string {
    try {
      run();
    } catch (const nlohmann::json::exception& e) {
      return problem_of(e);
    } catch (const error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(problem([] { parse_json("{\"a\" 1}"); }), "it is not JSON from byte 6 on");
  EXPECT_EQ(problem([] { (void)parse_json("[]").at("a"); }).find("json.exception"), std::string::npos);
  EXPECT_EQ(problem([] { (void)parse_json("{}").at("a"); }), "key 'a' not found");
}

TEST(json, nesting_is_bounded) {
  EXPECT_FALSE(refused(nested(32)));
  EXPECT_TRUE(refused(nested(33)));
  EXPECT_TRUE(refused(nested(1'000'000)));
  EXPECT_TRUE(refused(repeated("{\"a\":", 500'000)));
  EXPECT_FALSE(refused("\"" + repeated("[{", 100) + "\"")) << "brackets within strings are text";
  EXPECT_FALSE(refused("\"\\\"" + repeated("[", 100) + "\""));
}

TEST(json, size_values_and_members_are_bounded) {
  const json_limits small{.bytes = 1000, .values = 100, .members = 10};
  EXPECT_TRUE(refused("\"" + std::string(1000, 'a') + "\"", small));
  EXPECT_FALSE(refused("[" + repeated("1,", 97) + "1]", small));
  EXPECT_TRUE(refused("[" + repeated("1,", 101) + "1]", small));
  EXPECT_TRUE(refused("[" + repeated("[],", 60) + "1]", small));
  auto members = [](int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
    return text + "}";
  };
  EXPECT_FALSE(refused(members(10), small));
  EXPECT_TRUE(refused(members(11), small));
  EXPECT_FALSE(refused("[" + members(10) + "," + members(10) + "]", small)) << "for each object";
}
