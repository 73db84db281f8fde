#include "ir/matcher.hpp"

#include "aot/passes/rewrite.hpp"
#include "ir/error.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;
using match::any;
using match::function;

TEST(matcher, captures_operands_in_either_order) {
  program p;
  builder b(p.main());
  value x = b.p("x", {3}), e = b.f(exp, {x}), left = b.f(add, {e, x}), right = b.f(add, {x, e});
  auto pattern = function(add).commuted(function(exp).inputs({any().as("inner")}).as("e"), match::same("inner"));
  for (value root : {left, right}) {
    match::captures found;
    ASSERT_TRUE(pattern(root, found));
    EXPECT_EQ(found["inner"], x);
    EXPECT_EQ(found["e"], e);
    EXPECT_THROW(found["nothing"], error);
  }
  match::captures found;
  EXPECT_FALSE(pattern(b.f(add, {e, e}), found));
  EXPECT_FALSE(pattern(b.f(mul, {e, x}), found));
  // Captures of failed attempts are removed.
  EXPECT_EQ(found.mark(), 0u);
}

TEST(matcher, tests_attributes_constants_uses_and_alternatives) {
  program p;
  builder b(p.main());
  value x = b.p("x", {3, 3}), c = b.w({3, 3}), once = b.m.add(dot{.transpose_a = true}, {x, c}),
        twice = b.m.add(dot{}, {x, c});
  b.f(exp, {once});
  b.f(exp, {twice});
  b.f(neg, {twice});
  match::captures found;
  auto flagged = match::op<dot>([](const dot& d) { return d.transpose_a; });
  EXPECT_TRUE(flagged(once, found));
  EXPECT_FALSE(flagged(twice, found));
  EXPECT_TRUE(match::op<dot>().inputs({any(), match::constant()})(twice, found));
  EXPECT_FALSE(match::op<dot>().inputs({match::constant(), any()})(twice, found));
  EXPECT_FALSE(match::op<dot>().inputs({any()})(twice, found));
  EXPECT_TRUE(match::op<dot>().single_use()(once, found));
  EXPECT_FALSE(match::op<dot>().single_use()(twice, found));
  EXPECT_TRUE(match::either({match::op<convolution>(), match::op<dot>()})(once, found));
}

TEST(rewrite, rules_that_never_rest_are_stopped) {
  program p;
  builder b(p.main());
  b.out({b.f(exp, {b.p("x", {3})})});
  auto expected = run(p);
  std::vector<rule> rules{
      {"again", function(exp).inputs({any().as("x")}),
       [](rewriter& write, value, const match::captures& found) { return write.apply(exp, {found["x"]}); }}};
  EXPECT_TRUE(apply_rules(p.main(), rules));
  p.validate();
  EXPECT_EQ(p.main().instructions().size(), 2u);
  expect_equal(expected, run(p), 0);
}

TEST(matcher, names_the_operations_that_can_match) {
  using list = std::vector<std::string_view>;
  auto x = any().as("x");
  EXPECT_EQ(function(add).commuted(x, any()).when([](value) { return true; }).single_use().as("sum").operations(),
            list{"add"});
  EXPECT_EQ(match::op<dot>().inputs({x, x}).operations(), list{"dot"});
  EXPECT_EQ(match::constant().operations(), list{"constant"});
  EXPECT_EQ(match::either({function(exp), match::op<reduce>()}).operations(), (list{"exp", "reduce"}));
  EXPECT_TRUE(match::either({function(exp), any()}).operations().empty());
  EXPECT_TRUE(match::op<elementwise>().operations().empty());  // the name is the function's
}

}  // namespace
}  // namespace kiln::testing
