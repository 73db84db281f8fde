// Expected outputs of corpus/header.hip, in plain C++.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "corpus.hpp"

namespace kiln::corpus {
namespace {

std::uint64_t reversed(std::uint64_t v) {
  std::uint64_t result = 0;
  for (int k = 0; k < 64; ++k) result |= (v >> k & 1) << (63 - k);
  return result;
}

}  // namespace

void add_header(std::vector<test_case>& all) {
  using enum element_type;
  constexpr int n = 1000;
  const literal halves = floats({n}, -2, 2, f16), bfloats = floats({n}, -2, 2, bf16), reals = floats({n}, -3, 3),
                doubles = floats({n}, 0.1, 20, f64);
  const literal longs = integers({n}, -(std::int64_t{1} << 60), std::int64_t{1} << 60, i64),
                numbers = integers({n}, 0, 1000000);
  auto add = [&](const char* name, std::vector<literal> inputs, literal expected, double tolerance = 1e-6) {
    all.push_back({"header.hip", name, std::move(inputs), {std::move(expected)}, tolerance});
  };

  add("half_pair_functions", {halves},
      each<std::uint16_t>(f16, {n},
                          [&](int i) {
                            auto one = [&](int k) {
                              auto a = static_cast<float>(halves.at(i / 2 * 2 + k));
                              return std::max(a * a - 0.5f, std::fabs(a));
                            };
                            float low = one(0), high = one(1);
                            return f32_to_f16(i % 2 == 0 ? high - low : low > high ? std::sqrt(high) : low / 2);
                          }),
      3e-3);
  add("bfloat_functions", {bfloats},
      each<std::uint16_t>(bf16, {n},
                          [&](int i) {
                            double low = bfloats.at(i / 2 * 2), high = bfloats.at(i / 2 * 2 + 1);
                            return f32_to_bf16(static_cast<float>(i % 2 == 0 ? 2 * (low * high + low)
                                                                             : 2 * std::min(low, std::fabs(high))));
                          }),
      5e-3);
  add("namespace_std", {reals}, each_float({n}, [&](int i) {
        float a = reals.as<float>()[i];
        return std::max(std::max(a, -1.0f), std::sqrt(std::fabs(a))) +
               2.0f * static_cast<float>(std::max(static_cast<int>(a * 4), -1));
      }));
  add("counted_barriers", {numbers}, each_int({n}, [&](int i) {
        auto v = numbers.as<std::int32_t>().subspan(static_cast<std::size_t>(i / 100 * 100), 100);
        auto even = std::ranges::count_if(v, [](int a) { return a % 2 == 0; });
        return static_cast<int>(even) * 4 + (std::ranges::any_of(v, [](int a) { return a > 999000; }) ? 2 : 0) +
               (std::ranges::all_of(v, [](int a) { return a < 999999; }) ? 1 : 0);
      }));
  add("bits_of_words", {longs}, each<std::int64_t>(i64, {n}, [&](int i) {
        std::int64_t v = longs.as<std::int64_t>()[i];
        auto word = static_cast<std::uint64_t>(v);
        auto low = static_cast<std::uint32_t>(word), high = static_cast<std::uint32_t>(word >> 32);
        std::uint64_t bytes =
            (word & 0xff) | (word >> 32 & 0xff) << 8 | (word >> 16 & 0xff) << 16 | (word >> 48 & 0xff) << 24;
        std::uint64_t sum = static_cast<std::uint32_t>(high << 7 | low >> 25) +
                            static_cast<std::uint64_t>(static_cast<std::uint32_t>(low >> 7 | high << 25)) * 3 +
                            bytes * 5;
        auto signed_high = static_cast<std::int64_t>(static_cast<__int128>(v) * (-v / 3) >> 64);
        auto unsigned_high =
            static_cast<std::int64_t>(static_cast<unsigned __int128>(word) * 0x123456789abcdef0ull >> 64);
        std::int64_t small = (static_cast<std::int32_t>(low << 8) >> 8) * 5;
        return static_cast<std::int64_t>(
            sum + reversed(word) + static_cast<std::uint64_t>(signed_high) + static_cast<std::uint64_t>(unsigned_high) +
            static_cast<std::uint64_t>(small) +
            static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(static_cast<float>(i) * -0.3f))) + word);
      }));
  add("gamma_functions", {doubles},
      each<double>(f64, {n},
                   [&](int i) {
                     double a = doubles.at(i);
                     return std::tgamma(a) / 8 + std::lgamma(a * 7) + std::sin(std::numbers::pi * std::fmod(a, 2.0)) +
                            std::nextafter(a, 9.0) + std::logb(a);
                   }),
      1e-12);
  add("named_instance", {longs}, each<std::int64_t>(i64, {n}, [&](int i) {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(longs.as<std::int64_t>()[i]) * 3);
      }));
  add("lists_and_left_out_inputs", {reals, floats({1}, 4, 5)}, each_float({n + 5}, [&](int i) {
        return (i < 2 || i - 2 >= n ? 0.0f : reals.as<float>()[i - 2]) + floats({1}, 4, 5).as<float>()[0];
      }));
}

}  // namespace kiln::corpus
