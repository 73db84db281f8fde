// Expected outputs of corpus/lanes.hip, in plain C++.
#include <algorithm>
#include <bit>

#include "corpus.hpp"

namespace kiln::corpus {

void add_lanes(std::vector<test_case>& all) {
  constexpr int n = 1024;
  const literal reals = floats({n}, -2, 2), numbers = integers({n}, 0, 100);
  const literal first = integers({32}, 0, 100),
                repeated = each_int({n}, [&](int i) { return first.as<std::int32_t>()[i % 32]; });
  auto x = reals.as<float>();
  auto v = numbers.as<std::int32_t>();
  auto r = first.as<std::int32_t>();
  auto add = [&](const char* name, std::vector<literal> inputs, literal expected) {
    all.push_back({"lanes.hip", name, std::move(inputs), {std::move(expected)}, 1e-6});
  };
  auto group = [](int i) { return i / 32 * 32; };

  add("shuffle_broadcast", {reals},
      each_float({n}, [&](int i) { return x[group(i) + 5] + x[group(i) + i % 128 * 3 % 32]; }));
  add("shuffle_scan", {numbers}, each_int({n}, [&](int i) {
        int sum = 0;
        for (int k = group(i); k <= i; ++k) sum += v[k];
        return sum;
      }));
  add("shuffle_reduce", {numbers}, each_int({n}, [&](int i) {
        // A lane without a partner adds its own value again.
        int now[16];
        for (int k = 0; k < 16; ++k) now[k] = v[i / 16 * 16 + k];
        for (int d = 8; d > 0; d /= 2) {
          int before[16];
          std::copy(now, now + 16, before);
          for (int k = 0; k < 16; ++k) now[k] += before[k + d < 16 ? k + d : k];
        }
        return now[i % 16];
      }));
  add("shuffle_butterfly", {reals},
      each_float({n}, [&](int i) { return *std::max_element(x.begin() + i / 8 * 8, x.begin() + i / 8 * 8 + 8); }));
  const literal doubles = floats({n}, -1, 1, element_type::f64),
                longs = integers({n}, -(std::int64_t{1} << 50), std::int64_t{1} << 50, element_type::i64),
                halves = floats({n}, -1, 1, element_type::f16);
  add("shuffle_double", {doubles},
      each<double>(element_type::f64, {n}, [&](int i) { return doubles.as<double>()[i ^ 9] * 2; }));
  add("shuffle_long", {longs}, each<std::int64_t>(element_type::i64, {n}, [&](int i) {
        return longs.as<std::int64_t>()[i % 32 + 3 < 32 ? i + 3 : i] - 1;
      }));
  add("shuffle_half", {halves},
      each<std::uint16_t>(element_type::f16, {n}, [&](int i) { return halves.as<std::uint16_t>()[i ^ 1]; }));
  add("shuffle_in_branch", {numbers}, each_int({n}, [&](int i) {
        if (i % 128 < 64) return v[i ^ 3] * 5;
        int rounds = 3 + i / 128, at = i % 32;
        // After k rounds a lane has what lane + k had, and the k that were added on the way.
        return v[group(i) + (at + rounds) % 32] + rounds * (rounds - 1) / 2;
      }));
  add("workgroup_sum", {numbers}, each_int({n / 256}, [&](int g) {
        int sum = 0;
        for (int k = 0; k < 256; ++k) sum += v[g * 256 + k];
        return sum;
      }));
  add("lane_numbers", {numbers}, each_int({n}, [&](int i) { return v[i] + i % 32 + 1; }));
  add("ballot_bits", {numbers}, each_int({n}, [&](int i) {
        std::uint32_t bits = 0;
        for (int k = 0; k < 32; ++k) bits |= static_cast<std::uint32_t>(v[group(i) + k] > 50) << k;
        return static_cast<int>(bits);
      }));
  add("ballot_count", {numbers}, each_int({n / 128}, [&](int g) {
        int count = 0;
        for (int k = 0; k < 128; ++k) count += v[g * 128 + k] % 3 == 0;
        return count;
      }));
  add("any_all", {repeated}, each_int({n}, [&](int) {
        bool high = std::ranges::any_of(r, [](int a) { return a > 98; }),
             low = std::ranges::all_of(r, [](int a) { return a > 3; });
        return high + 4 + 8 * low;
      }));
  auto rounds_of = [](int a) { return a > 0 ? (a + 6) / 7 : 0; };
  add("any_loop", {repeated}, each_int({n}, [&](int i) {
        int most = 0;
        for (int a : r) most = std::max(most, rounds_of(a % 40));
        return most * 100 + rounds_of(r[i % 32] % 40);
      }));
  add("votes_of_the_rest", {numbers}, each_int({n}, [&](int i) {
        int seen = 0;
        for (int k = 0; k < v[i] % 5; ++k) {
          int here = 0;
          for (int lane = 0; lane < 32; ++lane) here += v[group(i) + lane] % 5 > k;
          seen = seen * 33 + here;
        }
        return seen;
      }));
  std::vector<std::int32_t> even(n, -1);
  for (int base = 0; base < n; base += 256)
    for (int k = 0, at = base; k < 256; ++k)
      if (v[base + k] % 2 == 0) even[static_cast<std::size_t>(at++)] = v[base + k];
  add("compact", {numbers}, literal::of({element_type::i32, {n}}, even));
}

}  // namespace kiln::corpus
