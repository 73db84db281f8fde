#include "ir/open_dimensions.hpp"

#include <gtest/gtest.h>

#include "ir/error.hpp"

namespace kiln {
namespace {

program with_symbols() {
  program p;
  p.symbols = {{"batch", {}}, {"height", {}}, {"width", {}}};
  return p;
}

std::string refusal(const dim_bindings& given) try {
  require_dimensions(with_symbols(), given, " with --dim");
  return "";
} catch (const error& e) {
  return e.what();
}

TEST(open_dimensions, are_all_named_at_once) {
  EXPECT_EQ(refusal({}), "dimensions 'batch', 'height' and 'width' are open: give them values with --dim");
  EXPECT_EQ(refusal({{"height", 3}}), "dimensions 'batch' and 'width' are open: give them values with --dim");
  EXPECT_EQ(refusal({{"height", 3}, {"width", 4}}), "dimension 'batch' is open: give it a value with --dim");
  EXPECT_EQ(refusal({{"batch", 2}, {"height", 3}, {"width", 4}}), "");
}

}  // namespace
}  // namespace kiln
