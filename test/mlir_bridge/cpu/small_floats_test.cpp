// Floats of 4 and 8 bits in kernels: reads every code, and writes numbers around every rounding boundary.
#include <bit>
#include <cmath>

#include "ir/error.hpp"
#include "test/mlir_bridge/cpu/harness.hpp"

namespace kiln::test {
namespace {

using enum element_type;

std::string name_of(const testing::TestParamInfo<element_type>& info) { return std::string(name(info.param)); }

literal all_codes(element_type type) {
  std::vector<std::byte> bytes;
  for (int code = 0; code < 256; ++code) bytes.push_back(static_cast<std::byte>(code));
  return literal({type, {256 * 8 / storage_bits(type)}}, std::move(bytes));
}

// Returns numbers on and around the rounding boundaries of the type, and random ones of any magnitude.
literal boundaries(element_type type) {
  const literal codes = all_codes(type);
  std::vector<float> numbers{0.0f, -0.0f, INFINITY, -INFINITY, std::nanf(""), 1e38f, -1e38f, 1e-38f};
  for (std::int64_t i = 0; i < codes.type().element_count(); ++i) {
    auto x = static_cast<float>(codes.at(i));
    if (!std::isfinite(x)) continue;
    for (float factor : {1.0f, 1.0625f, 1.125f, 1.25f, 1.5f})
      for (float v : {x * factor, std::nextafter(x * factor, 1e30f), std::nextafter(x * factor, -1e30f)})
        numbers.push_back(v);
  }
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return literal::of<float>({f32, {static_cast<std::int64_t>(numbers.size())}}, numbers);
}

class read_floats : public testing::TestWithParam<element_type> {};
class small_floats : public testing::TestWithParam<element_type> {};

TEST_P(read_floats, every_code_is_read) {
  const literal codes = all_codes(GetParam());
  for (element_type wide : {f32, f16, f64}) {
    if (wide == f16 && GetParam() == f8e8m0) continue;
    auto m = fusion({codes.type()}, [&](module& k, const std::vector<value>& in) {
      return std::vector{k.add(convert{wide}, {in[0]})};
    });
    check(*m, std::span(&codes, 1), tolerance{0, 0});
  }
}

TEST_P(small_floats, numbers_are_rounded) {
  const literal numbers = boundaries(GetParam());
  auto m = fusion({numbers.type()}, [&](module& k, const std::vector<value>& in) {
    value narrow = k.add(convert{GetParam()}, {in[0]});
    return std::vector{narrow, k.add(convert{f32}, {narrow})};
  });
  check(*m, std::span(&numbers, 1), tolerance{0, 0});
}

TEST_P(small_floats, elements_move) {
  auto m = fusion({typed(GetParam(), {5, 7})}, [&](module& k, const std::vector<value>& in) {
    return std::vector{k.add(concat{1}, {k.add(transpose{{1, 0}}, {in[0]}), k.add(transpose{{1, 0}}, {in[0]})})};
  });
  check(*m, 3, 1, tolerance{0, 0});
}

INSTANTIATE_TEST_SUITE_P(types, read_floats, testing::Values(f8e4m3, f8e5m2, f8e4m3fnuz, f8e5m2fnuz, f8e8m0, f4e2m1),
                         name_of);
INSTANTIATE_TEST_SUITE_P(types, small_floats, testing::Values(f8e4m3, f8e5m2, f8e4m3fnuz, f8e5m2fnuz, f8e8m0), name_of);

TEST(packed_integers, of_two_bits_are_read) {
  for (element_type type : {i2, u2}) {
    const literal codes = all_codes(type);
    for (element_type wide : {f32, i8, i64})
      for (bool shifted : {false, true}) {
        auto m = fusion({codes.type()}, [&](module& k, const std::vector<value>& in) {
          return std::vector{k.add(convert{wide}, {shifted ? k.add(slice{{3}, {901}, {1}}, {in[0]}) : in[0]})};
        });
        check(*m, std::span(&codes, 1), tolerance{0, 0});
      }
  }
}

TEST(bit_cast_kernels, keep_the_bits) {
  struct pair {
    element_type from, to;
  };
  for (auto [from, to] : {pair{f32, i32}, pair{u32, f32}, pair{f64, u64}, pair{i64, f64}, pair{f16, i16},
                          pair{u16, bf16}, pair{f8e5m2, u8}, pair{u8, i8}, pair{boolean, u8}, pair{u8, boolean}}) {
    auto m = fusion({{from, {300}}},
                    [&](module& k, const std::vector<value>& in) { return std::vector{k.add(bit_cast{to}, {in[0]})}; });
    check(*m, 1, 3, tolerance{0, 0});
  }
}

TEST(bit_cast_kernels, read_packed_types_as_others) {
  const literal codes = all_codes(u4);
  auto m = fusion({codes.type()}, [&](module& k, const std::vector<value>& in) {
    return std::vector{k.add(convert{f32}, {k.add(bit_cast{f4e2m1}, {in[0]})}),
                       k.add(convert{i8}, {k.add(bit_cast{i4}, {in[0]})})};
  });
  check(*m, std::span(&codes, 1), tolerance{0, 0});
}

class packed_types : public testing::TestWithParam<element_type> {};

// Sizes with a last byte that is full, and with one that is not; two outputs of one kernel.
TEST_P(packed_types, are_written) {
  for (std::int64_t columns : {1, 8, 43}) {
    auto m = fusion({typed(f32, {21, columns})}, [&](module& k, const std::vector<value>& in) {
      const value turned = k.add(transpose{{1, 0}}, {in[0]});
      const value positive = k.add(elementwise{scalar_function::abs}, {turned});
      return std::vector{k.add(convert{GetParam()}, {turned}), turned, k.add(convert{GetParam()}, {positive})};
    });
    std::mt19937 random(7);
    const literal codes = random_literal(typed(f32, {21, columns}), random, storage_bits(GetParam()) == 2 ? 0.4 : 2);
    check(*m, std::span(&codes, 1), tolerance{0, 0});
  }
}

INSTANTIATE_TEST_SUITE_P(types, packed_types, testing::Values(i4, u4, i2, u2, f4e2m1), name_of);

}  // namespace
}  // namespace kiln::test
