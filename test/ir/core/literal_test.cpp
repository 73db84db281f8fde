#include "ir/literal.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/error.hpp"

using namespace kiln;

TEST(element_type, every_small_float_reads_back) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    auto h = static_cast<std::uint16_t>(bits);
    float half = f16_to_f32(h), brain = bf16_to_f32(h);
    if (std::isnan(half)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(half))));
    } else {
      EXPECT_EQ(f32_to_f16(half), h);
    }
    if (!std::isnan(brain)) {
      EXPECT_EQ(f32_to_bf16(brain), h);
    }
  }
  for (std::size_t i = 0; i < element_type_count; ++i) {
    auto type = static_cast<element_type>(i);
    if (!is_float(type) || storage_bits(type) > 8) continue;
    for (int code = 0; code < 1 << storage_bits(type); ++code) {
      std::byte stored{static_cast<unsigned char>(code)}, again{0};
      double v = load_element(type, &stored, 0);
      store_element(type, &again, 0, v);
      if (std::isnan(v)) EXPECT_TRUE(std::isnan(load_element(type, &again, 0))) << name(type) << " " << code;
      else EXPECT_EQ(again, stored) << name(type) << " " << code;
    }
  }
}

TEST(element_type, rounding_is_to_nearest_even) {
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3c00);  // half way: to even
  EXPECT_EQ(f32_to_f16(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);  // half of the smallest subnormal: to even
  EXPECT_EQ(f32_to_f16(-0x1.8p-25f), 0x8001);
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(f8e4m3_to_f32(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(f8e4m3_to_f32(f32_to_f8e4m3(1000.0f))));
  EXPECT_TRUE(std::isinf(f8e5m2_to_f32(f32_to_f8e5m2(1e6f))));
  EXPECT_EQ(f32_to_f8e4m3fnuz(1.0f), 0x40);
  EXPECT_EQ(f8e4m3fnuz_to_f32(0x7f), 240.0f);
  EXPECT_EQ(f32_to_f8e4m3fnuz(-1000.0f), 0x80);  // NaN
  EXPECT_EQ(f32_to_f8e4m3fnuz(-0.0f), 0);
  EXPECT_EQ(f8e5m2fnuz_to_f32(0x7f), 57344.0f);
  // Half of the smallest number rounds to even.
  EXPECT_EQ(f32_to_f8e5m2fnuz(0x1p-18f), 0);
  EXPECT_EQ(f32_to_f8e5m2fnuz(-0x1.8p-18f), 0x81);
}

TEST(element_type, powers_of_two_round_to_nearest_with_ties_up) {
  EXPECT_EQ(f8e8m0_to_f32(127), 1.0f);
  EXPECT_EQ(f8e8m0_to_f32(0), 0x1p-127f);
  EXPECT_EQ(f32_to_f8e8m0(1.49f), 127);
  EXPECT_EQ(f32_to_f8e8m0(1.5f), 128);
  EXPECT_EQ(f32_to_f8e8m0(0), 0);
  EXPECT_EQ(f32_to_f8e8m0(0x1p127f), 254);
  EXPECT_EQ(f32_to_f8e8m0(0x1.8p127f), 255);  // NaN
  EXPECT_EQ(f32_to_f8e8m0(INFINITY), 255);
}

TEST(element_type, f4_saturates) {
  EXPECT_EQ(f32_to_f4e2m1(0.25f), 0);  // ties to even
  EXPECT_EQ(f32_to_f4e2m1(0.75f), 2);
  EXPECT_EQ(f32_to_f4e2m1(-5.0f), 14);
  EXPECT_EQ(f32_to_f4e2m1(1e9f), 7);
  EXPECT_EQ(f4e2m1_to_f32(f32_to_f4e2m1(-INFINITY)), -6.0f);
}

TEST(element_type, names_read_back) {
  for (std::size_t i = 0; i < element_type_count; ++i) {
    auto type = static_cast<element_type>(i);
    EXPECT_EQ(parse_element_type(name(type)), type);
  }
  EXPECT_EQ(parse_element_type("f33"), std::nullopt);
}

TEST(literal, every_type_stores_and_loads) {
  for (std::size_t i = 0; i < element_type_count; ++i) {
    auto type = static_cast<element_type>(i);
    std::vector<double> values{0, 1, 1, 0, 1};
    if (type == element_type::f8e8m0) values = {0.5, 1, 4, 0.5, 1};
    else if (type != element_type::boolean && type != element_type::i2) values[1] = 3;
    if (small_float_format(type) || is_signed_integer(type)) values[2] = -2;
    auto l = literal::from_doubles({type, {5}}, values);
    EXPECT_EQ(l.to_doubles(), values) << name(type);
    EXPECT_EQ(l.bytes().size(), storage_bytes(type, 5));
  }
}

TEST(literal, splats_are_found) {
  EXPECT_EQ(literal::filled({element_type::f16, {3, 3}}, 0.5).splat(), 0.5);
  EXPECT_EQ(literal::filled({element_type::i4, {3}}, -3).splat(), -3);
  EXPECT_EQ(literal::of<float>({element_type::f32, {2}}, {1, 2}).splat(), std::nullopt);
  EXPECT_EQ(literal::of<float>({element_type::f32, {2}}, {0.0f, -0.0f}).splat(), std::nullopt);
  EXPECT_EQ(literal::of<float>({element_type::f32, {0}}, {}).splat(), std::nullopt);
  EXPECT_TRUE(std::isnan(*literal::filled({element_type::f32, {4}}, std::nan("")).splat()));
}

TEST(literal, size_must_match) {
  EXPECT_THROW(literal({element_type::f32, {2}}, std::vector<std::byte>(7)), error);
  EXPECT_THROW(literal::of<float>({element_type::f32, {dim::symbol("n")}}, {1}), error);
}

TEST(literal, int64_is_exact) {
  std::vector<std::int64_t> values{INT64_MAX, INT64_MIN, 9007199254740993};
  EXPECT_EQ(literal::from_int64(values).to_int64(), values);
}
