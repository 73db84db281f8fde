// Expected outputs of corpus/types.hip, in plain C++.
#include <algorithm>
#include <bit>
#include <cmath>

#include "corpus.hpp"

namespace kiln::corpus {

void add_types(std::vector<test_case>& all) {
  using enum element_type;
  constexpr int n = 1000;
  const literal reals = floats({n}, -2, 2), halves = floats({n}, -2, 2, f16), bfloats = floats({n}, -2, 2, bf16),
                doubles = floats({n}, -2, 2, f64);
  const literal longs = integers({n}, -(std::int64_t{1} << 60), std::int64_t{1} << 60, i64),
                others = integers({n}, -100000, 300000, i64);
  const literal bytes = integers({n}, -128, 128, i8), more = integers({n}, -90, 128, i8),
                unsigned_bytes = integers({n}, 0, 256, u8), shorts = integers({n}, -32768, 32768, i16),
                numbers = integers({n}, -1000000, 1000000);
  auto x = reals.as<float>();
  auto v = numbers.as<std::int32_t>();
  auto add = [&](const char* name, std::vector<literal> inputs, literal expected, double tolerance = 1e-6) {
    all.push_back({"types.hip", name, std::move(inputs), {std::move(expected)}, tolerance});
  };

  add("half_arithmetic", {halves},
      each<std::uint16_t>(f16, {n},
                          [&](int i) {
                            float a = static_cast<float>(halves.at(i));
                            return f32_to_f16(a > 0.5f ? a * a + 1 : a * 3 - a);
                          }),
      2e-3);
  add("half_pairs", {halves},
      each<std::uint16_t>(f16, {n},
                          [&](int i) {
                            auto a = static_cast<float>(halves.at(i));
                            return f32_to_f16(a * a + (i % 2 ? -0.25f : 0.25f));
                          }),
      2e-3);
  add("bfloat_arithmetic", {bfloats},
      each<std::uint16_t>(bf16, {n},
                          [&](int i) {
                            auto a = static_cast<float>(bfloats.at(i));
                            return f32_to_bf16(a * a - 0.5f * a);
                          }),
      1e-2);
  add("doubles", {doubles},
      each<double>(f64, {n},
                   [&](int i) {
                     double a = doubles.at(i);
                     return std::sqrt(std::fabs(a)) / (1 + a * a) + std::floor(a * 4) -
                            static_cast<double>(static_cast<float>(a));
                   }),
      1e-14);
  add("longs", {longs, others}, each<std::int64_t>(i64, {n}, [&](int i) {
        std::int64_t a = longs.as<std::int64_t>()[i], b = others.as<std::int64_t>()[i] | 1;
        auto bits = static_cast<std::uint64_t>(a);
        std::uint64_t sum = static_cast<std::uint64_t>(a / b) + static_cast<std::uint64_t>(a % b) * 3 +
                            bits / static_cast<std::uint64_t>(b < 0 ? -b : b);
        return static_cast<std::int64_t>(sum + ((bits << 7) ^ static_cast<std::uint64_t>(a >> 9)) + (bits >> 13));
      }));
  add("bytes_saturate", {bytes, more}, each<std::int8_t>(i8, {n}, [&](int i) {
        return std::clamp<int>(bytes.as<std::int8_t>()[i] + more.as<std::int8_t>()[i], -128, 127);
      }));
  add("unsigned_bytes", {unsigned_bytes}, each<std::uint8_t>(u8, {n}, [&](int i) {
        int a = unsigned_bytes.as<std::uint8_t>()[i];
        return (a * 7 / 4 % 256 + (a > 100) - a * 8 % 256) & 255;
      }));
  add("shorts", {shorts}, each<std::int16_t>(i16, {n}, [&](int i) {
        std::int16_t a = shorts.as<std::int16_t>()[i];
        return static_cast<std::int16_t>(static_cast<std::int16_t>(a * a) + static_cast<std::int16_t>(a >> 3) -
                                         static_cast<std::int16_t>(static_cast<std::uint16_t>(a) >> 5) +
                                         static_cast<std::int16_t>(a / 7) * (a % 3));
      }));
  const literal flags = integers({n}, 0, 2, boolean),
                opposite = each<std::uint8_t>(boolean, {n}, [](int i) { return i / 3 % 2; });
  add("booleans", {flags, opposite}, each<std::uint8_t>(boolean, {n}, [&](int i) {
        bool a = flags.at_int(i), b = opposite.at_int(i);
        return (a && !b) || (a == b && i % 3 == 0);
      }));
  add("float4_vectors", {reals}, each_float({n}, [&](int i) {
        int g = i / 4 * 4, k = i % 4;
        return k == i / 4 % 4 ? x[g] + x[g + 1] : x[i] * 2 + x[g + 3 - k];
      }));
  add("int_vectors", {numbers}, each_int({n}, [&](int i) {
        int a = v[i / 2 * 2], b = v[i / 2 * 2 + 1];
        return i % 2 == 0 ? b * 3 + a : a > b ? a - b : b * 4;
      }));
  add("conversions", {reals}, each_float({n}, [&](int i) {
        float a = x[i] * 100, magnitude = std::fabs(a);
        return static_cast<float>(static_cast<int>(a)) + static_cast<float>(static_cast<unsigned>(magnitude)) * 0.5f +
               static_cast<float>(static_cast<std::int64_t>(a * 1000)) +
               static_cast<float>(static_cast<std::int8_t>(static_cast<int>(a))) +
               static_cast<float>(static_cast<std::uint8_t>(static_cast<int>(magnitude))) + a +
               f16_to_f32(f32_to_f16(a));
      }));
  add("bit_functions", {numbers}, each_int({n}, [&](int i) {
        auto a = static_cast<std::uint32_t>(v[i]);
        std::uint32_t reversed = 0;
        for (int k = 0; k < 32; ++k) reversed |= (a >> k & 1) << (31 - k);
        auto square = static_cast<std::uint64_t>(static_cast<std::int64_t>(v[i]) * v[i]),
             wide = static_cast<std::uint64_t>(static_cast<std::int64_t>(v[i]));
        std::uint32_t sum = static_cast<std::uint32_t>(std::popcount(a) + 100 * std::countl_zero(a) +
                                                       10000 * (a ? std::countr_zero(a) + 1 : 0)) +
                            (reversed >> 20);
        sum += static_cast<std::uint32_t>((static_cast<std::int64_t>(v[i]) * 0x12345678) >> 32) +
               static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * 0x87654321u) >> 32);
        return static_cast<int>(sum + static_cast<std::uint32_t>(std::popcount(square) + std::countl_zero(wide)));
      }));
  add("float_bits", {reals}, each_int({n}, [&](int i) {
        auto b = std::bit_cast<std::int32_t>(x[i]);
        return b < 0 ? ~b : b ^ std::bit_cast<std::int32_t>(x[i] + 1);
      }));
}

}  // namespace kiln::corpus
