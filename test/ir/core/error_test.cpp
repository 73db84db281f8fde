#include "ir/error.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>
#include <string>

#include "ir/error_kinds.hpp"
#include "test/support/documented_table.hpp"

using namespace kiln;

TEST(error, every_kind_has_a_name_of_its_own_and_is_found_by_it) {
  std::set<std::string_view> names;
  for (const error_kind_row& row : error_kinds) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(name(row.kind), row.name);
    EXPECT_EQ(error_kind_named(row.name), row.kind);
    EXPECT_EQ(exit_code(row.kind), row.exit_code);
  }
  EXPECT_EQ(error_kind_named("no such kind"), error_kind::internal);
}

TEST(error, kinds_are_documented) {
  std::string table = "| kind | exit code | status in `kiln.h` | meaning |\n|---|---|---|---|\n";
  for (const error_kind_row& row : error_kinds) {
    std::string status;
    for (char c : row.status) status += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    table += fmt::format("| `{}` | {} | `KILN_{}` | {} |\n", row.name, row.exit_code, status, row.meaning);
  }
  kiln::testing::expect_documented("docs/errors.md", "error kinds", table);
}
