#include "ir/dim.hpp"

#include <gtest/gtest.h>

#include "ir/error.hpp"

using kiln::dim;

TEST(dim, numbers_behave_as_numbers) {
  EXPECT_EQ(dim(3) + dim(4), dim(7));
  EXPECT_EQ(dim(3) * dim(-4), dim(-12));
  EXPECT_EQ(dim(-7) / dim(2), dim(-4));  // floors
  EXPECT_EQ(dim(7).value(), 7);
  EXPECT_THROW(dim(1) / dim(0), kiln::error);
  EXPECT_THROW(dim(INT64_MAX) * dim(2), kiln::error);
}

TEST(dim, equal_expressions_are_equal) {
  dim b = dim::symbol("batch"), s = dim::symbol("seq");
  EXPECT_EQ(b + s, s + b);
  EXPECT_EQ((b + 1) * (s - 1), b * s - b + s - 1);
  EXPECT_EQ(b - b, dim(0));
  EXPECT_NE(b, s);
  EXPECT_NE(b, dim(1));
  EXPECT_EQ(2 * b / dim(2), b);
  EXPECT_EQ(b * s * 6 / (b * 3), s * 2);
  EXPECT_EQ((b * 4 + s * 2) / dim(2), b * 2 + s);
}

TEST(dim, floor_division_stays_symbolic_until_it_can_be_evaluated) {
  dim h = dim::symbol("height");
  dim out = (h + 2 * 3 - 7) / dim(2) + 1;
  EXPECT_FALSE(out.is_static());
  EXPECT_EQ(out.substitute({{"height", 224}}), dim(112));
  EXPECT_EQ(out.substitute({{"height", 225}}), dim(113));
  EXPECT_EQ(out.substitute({{"width", 225}}), out);
  EXPECT_EQ(out.symbols(), std::set<std::string>{"height"});
  EXPECT_THROW(out.value(), kiln::error);
  EXPECT_THROW(h / dim(0), kiln::error);
}

TEST(dim, polynomials_divide_exactly) {
  dim b = dim::symbol("b"), p = dim::symbol("p"), s = dim::symbol("s"), w = dim::symbol("w");
  EXPECT_EQ((b * p * 64 + b * s * 64) / (p * 16 + s * 16), b * 4);
  EXPECT_EQ((p + s) * (p - s + 3) / (p + s), p - s + 3);
  dim quotient = (p * p + s) / (p + w);
  EXPECT_EQ(quotient.str(), "floor(p*p+s/p+w)");
  EXPECT_EQ(quotient.substitute({{"p", 5}, {"s", 3}, {"w", 1}}), dim(4));
  EXPECT_EQ(p * s * 6 / (p * w * 4), s * 3 / (w * 2));  // what both sides share is cancelled
}

TEST(dim, equal_quotients_have_one_form) {
  dim h = dim::symbol("h");
  auto halved = [](const dim& d, std::int64_t pad) { return (d + dim(2 * pad - 3)) / dim(2) + dim(1); };
  EXPECT_EQ(halved(h, 1), (h + 1) / dim(2));
  EXPECT_EQ(halved(halved(h, 1), 1), (h + 3) / dim(4));  // nested quotients
  EXPECT_EQ(dim(2) * (h / dim(4)) / dim(4), h / dim(8)) << "nested once the common factor is divided out";
  EXPECT_EQ((h * 4 + 8) / dim(8), (h + 2) / dim(2));
  EXPECT_EQ(h - (h * 7) / dim(8), (h + 7) / dim(8));  // rounding up, by two ways
  EXPECT_EQ(dim(0) - (dim(0) - h) / dim(8), (h + 7) / dim(8));
}

TEST(dim, minima_and_maxima) {
  dim p = dim::symbol("p"), s = dim::symbol("s");
  EXPECT_EQ(dim::min(s, s + 2), s);
  EXPECT_EQ(dim::max(p + s, p + 1), p + dim::max(s, 1));
  EXPECT_EQ(dim::min(dim::min(s, p), 512), dim::min(512, dim::min(p, s)));
  EXPECT_EQ(dim::min(s - 8, 0) + 8, dim::min(s, 8));
  EXPECT_EQ(dim::min(s, 512).str(), "min(512,s)");
  EXPECT_EQ(dim::min(s, 512).substitute({{"s", 7}}), dim(7));
  // As the boxes that a detector takes from each of its levels: the text must not grow with the product of the cases.
  dim boxes = 0;
  for (int level = 0; level < 9; ++level) boxes = boxes + dim::min(1000, dim::symbol("n" + std::to_string(level)));
  EXPECT_LT(dim::min(100, boxes).str().size(), 200u);
  EXPECT_EQ(dim::parse(dim::min(100, boxes).str()), dim::min(100, boxes));
  EXPECT_EQ(dim::max(s, 512).substitute({{"s", 7}}), dim(512));
}

TEST(dim, text_reads_back) {
  dim b = dim::symbol("batch"), s = dim::symbol("past.len");
  for (const dim& d :
       {dim(0), dim(-5), dim(12), b, b * s, b * -3 + 7, (b * b + s) / dim(4) * 2 - s, ((b + 1) / dim(2) + 3) / dim(5),
        dim::min(b, s * 2 - 7) + 1, dim::max(dim::min(b, 9), b * s / (b + s))}) {
    EXPECT_EQ(dim::parse(d.str()), d) << d.str();
    EXPECT_EQ(dim::parse(d.str()).str(), d.str());
  }
}

TEST(dim, malformed_text_is_refused) {
  for (const char* text : {"", "+", "a+", "*a", "floor(a)", "floor(a/0)", "floor(a/b", "min(a)b", "mean(a,b)", "min(a,",
                           "max()", "a b", "(a)", "99999999999999999999", "floor(a/2"})
    EXPECT_THROW(dim::parse(text), kiln::error) << text;
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "floor(";
  EXPECT_THROW(dim::parse(deep), kiln::error);
}

TEST(dim, symbols_are_cleaned) {
  EXPECT_EQ(dim::symbol("past length+1").str(), "past_length_1");
  EXPECT_EQ(dim::symbol("0").str(), "d_0");
}

TEST(dim, hostile_expressions_are_refused_quickly) {
  EXPECT_NO_THROW(dim::parse("-9223372036854775808*x") / dim::parse("-2*x"));
  EXPECT_THROW(dim::parse("-9223372036854775808*x") / dim::parse("-1*x"), kiln::error);
  dim product = 1;
  EXPECT_THROW(for (int i = 0; i < 40; ++i) product =
                   product * (dim::symbol("a" + std::to_string(i)) + dim::symbol("b" + std::to_string(i))),
               kiln::error);
}
