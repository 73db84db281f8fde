// Sizes that are computed in floats: dims repeat the steps of f32 exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/dim_atoms.hpp"
#include "ir/dim_facts.hpp"
#include "ir/dim_table.hpp"
#include "ir/error.hpp"

namespace {

using namespace kiln;
using kind = real_step::kind;

real_step size(std::uint32_t operand) { return {kind::size, operand, 0}; }
real_step number(float x) { return {kind::number, 0, x}; }
real_step step(kind is) { return {is, 0, 0}; }

// floor(h * min(800 / min(h, w), 1333 / max(h, w))), as torchvision's detection models resize an image.
dim resized(const dim& h, const dim& w) {
  return dim::floor_of_real({size(0), number(800), size(1), step(kind::div), number(1333), size(2), step(kind::div),
                             step(kind::minimum), step(kind::mul)},
                            {h, dim::min(h, w), dim::max(h, w)});
}

std::int64_t resized(std::int64_t h, std::int64_t w) {
  const auto low = static_cast<float>(std::min(h, w)), high = static_cast<float>(std::max(h, w));
  const float by_low = 800 / low, by_high = 1333 / high;
  const float scale = std::min(by_low, by_high);
  const float scaled = static_cast<float>(h) * scale;
  return static_cast<std::int64_t>(scaled);
}

TEST(real_size, floats_round_as_the_model_does) {
  const dim d = resized(dim::symbol("h"), dim::symbol("w"));
  dim_table table;
  const auto index = table.add(d);
  int rounded = 0;
  for (std::int64_t h = 1; h < 900; h += 7)
    for (std::int64_t w = 1; w < 1400; w += 13) {
      const dim_bindings sizes{{"h", h}, {"w", w}};
      ASSERT_EQ(d.substitute(sizes), dim(resized(h, w))) << h << "x" << w;
      ASSERT_EQ(table.evaluate(sizes)->at(index), resized(h, w));
      const double exact = static_cast<double>(h) * std::min(800.0 / static_cast<double>(std::min(h, w)),
                                                             1333.0 / static_cast<double>(std::max(h, w)));
      rounded += static_cast<std::int64_t>(exact) != resized(h, w);
    }
  EXPECT_GT(rounded, 0);  // else the test would not distinguish f32 from exact arithmetic
}

TEST(real_size, text_reads_back) {
  const dim d = resized(dim::symbol("h"), dim::symbol("w")) * 2 + dim::symbol("h");
  EXPECT_EQ(dim::parse(d.str()), d);
  EXPECT_EQ(resized(dim::symbol("h"), 640).str(), "floor32(h,min(640,h),max(640,h):d0c44480000d1/c44a6a000d2/<*)");
  EXPECT_EQ(d.symbols(), (std::set<std::string>{"h", "w"}));
  EXPECT_EQ(d.replace({{"w", dim::symbol("h")}}), resized(dim::symbol("h"), dim::symbol("h")) * 2 + dim::symbol("h"));
}

TEST(real_size, malformed_text_is_refused) {
  for (const char* text :
       {"floor32(a)", "floor32(a:)", "floor32(a:d0", "floor32(a:d1)", "floor32(a:d)", "floor32(a:d0d0)", "floor32(a:*)",
        "floor32(a:d0*)", "floor32(a:c12)", "floor32(a:cz0000000)", "floor32(a:d0x)", "floor32(:c3f800000)",
        "floor32(a,:d0)", "floor32(3:c7f800000)"})
    EXPECT_THROW(dim::parse(text), kiln::error) << text;
  std::string deep = "floor32(a:d0";
  for (int i = 0; i < 5000; ++i) deep += "d0+";
  EXPECT_THROW(dim::parse(deep + ")"), kiln::error);
}

TEST(real_size, functions_of_one_number) {
  const dim n = dim::symbol("n");
  auto of = [&](kind f, float x) { return dim::floor_of_real({size(0), number(x), step(kind::mul), step(f)}, {n}); };
  for (std::int64_t k : {1, 2, 3, 5, 10, 11}) {
    const float x = static_cast<float>(k) * 0.7f, half = static_cast<float>(k) * 0.5f;
    EXPECT_EQ(of(kind::floor, 0.7f).substitute({{"n", k}}), dim(static_cast<std::int64_t>(std::floor(x))));
    EXPECT_EQ(of(kind::ceil, 0.7f).substitute({{"n", k}}), dim(static_cast<std::int64_t>(std::ceil(x))));
    EXPECT_EQ(of(kind::round, 0.5f).substitute({{"n", k}}), dim(static_cast<std::int64_t>(std::nearbyint(half))));
    EXPECT_EQ(of(kind::sqrt, 0.7f).substitute({{"n", k}}), dim(static_cast<std::int64_t>(std::sqrt(x))));
  }
  EXPECT_EQ(of(kind::round, 0.5f).substitute({{"n", 5}}), dim(2));  // half to even
}

TEST(real_size, bounds_are_those_of_rounded_operands) {
  const dim h = dim::symbol("h"), w = dim::symbol("w"), d = resized(h, w);
  dim_facts facts;
  EXPECT_TRUE(facts.at_least(d, 0));
  facts.set_range("h", 200, 1000), facts.set_range("w", 300, 2000);
  EXPECT_GE(*facts.lower(d), 100);
  EXPECT_LE(*facts.upper(d), 4000);
  for (std::int64_t a = 200; a <= 1000; a += 50)
    for (std::int64_t b = 300; b <= 2000; b += 50) {
      EXPECT_GE(resized(a, b), *facts.lower(d));
      EXPECT_LE(resized(a, b), *facts.upper(d));
    }
  // The sign of a difference is not known.
  const dim below = dim::floor_of_real({size(0), number(4.5f), step(kind::sub)}, {h});
  facts.set_range("h", 1, 10);
  EXPECT_EQ(facts.lower(below), -4);
  EXPECT_EQ(facts.upper(below), 5);
}

TEST(real_size, sizes_that_no_number_has_are_refused) {
  const dim n = dim::symbol("n");
  const dim inverse = dim::floor_of_real({number(1), size(0), step(kind::div)}, {n});
  EXPECT_THROW(inverse.substitute({{"n", 0}}), kiln::error);
  dim_table table;
  table.add(inverse);
  EXPECT_FALSE(table.evaluate({{"n", 0}}));
}

TEST(real_size, atoms_are_replaced_from_outside) {
  const dim h = dim::symbol("h"), d = resized(h, 640) / dim(2) + h;
  const dim named = replace_atoms(d, [](const dim_atom& atom) -> std::optional<dim> {
    return atom.is == dim_atom::kind::real ? std::optional(dim::symbol("r")) : std::nullopt;
  });
  EXPECT_EQ(named, dim::symbol("r") / dim(2) + h);
}

}  // namespace
