// Expected outputs of corpus/barriers.hip, shared.hip and atomics.hip, in plain C++.
#include <algorithm>
#include <cmath>
#include <limits>

#include "corpus.hpp"

namespace kiln::corpus {

void add_workgroups(std::vector<test_case>& all) {
  constexpr int n = 1024;
  const literal reals = floats({n}, -2, 2), numbers = integers({n}, 0, 1000), small = integers({960}, -50, 50);
  auto x = reals.as<float>();
  auto v = numbers.as<std::int32_t>();
  auto add = [&](const char* file, const char* name, std::vector<literal> inputs, literal expected,
                 double tolerance = 1e-6) {
    all.push_back({file, name, std::move(inputs), {std::move(expected)}, tolerance});
  };
  auto barriers = [&](const char* name, std::vector<literal> inputs, literal expected) {
    add("barriers.hip", name, std::move(inputs), std::move(expected), 1e-5);
  };
  // A workgroup after another: `function(base, out)` writes the elements of one.
  auto by_groups = [&](element_type type, int total, int size, auto zero, auto function) {
    std::vector<decltype(zero)> out(static_cast<std::size_t>(total));
    for (int base = 0; base < total; base += size) function(base, out.data() + base);
    return literal::of({type, {total}}, out);
  };
  constexpr auto i32 = element_type::i32, f32 = element_type::f32;

  barriers("reverse", {reals}, each_float({n}, [&](int i) { return x[i / 256 * 256 + 255 - i % 256]; }));
  barriers("tree_sum", {numbers}, each_int({n / 128}, [&](int g) {
             int sum = 0;
             for (int k = 0; k < 128; ++k) sum += v[g * 128 + k];
             return sum;
           }));
  barriers("prefix_sum", {numbers}, each_int({n}, [&](int i) {
             int sum = 0;
             for (int k = i / 256 * 256; k < i; ++k) sum += v[k];
             return sum;
           }));
  barriers("sum_of_tasks", {numbers}, each_int({(n + 99) / 100}, [&](int task) {
             int sum = 0;
             for (int k = task * 100; k < std::min(n, task * 100 + 100); ++k) sum += v[k];
             return sum;
           }));
  barriers("barrier_in_branch", {numbers},
           each_int({n}, [&](int i) { return i / 64 % 2 ? v[i ^ 1] + 1 : v[i / 64 * 64 + 63 - i % 64] * 2; }));
  literal steps = each_int({n / 128}, [](int g) { return g * 3 % 7; });
  barriers("relax", {reals, steps}, by_groups(f32, n, 128, 0.0f, [&](int base, float* out) {
             std::vector<float> now(130), next(130);
             for (int t = 0; t < 128; ++t) now[t + 1] = x[base + t];
             for (int s = 0; s < base / 128 * 3 % 7; ++s) {
               for (int t = 0; t < 128; ++t) next[t + 1] = (now[t] + now[t + 2]) * 0.5f;
               std::swap(now, next);
             }
             std::copy(now.begin() + 1, now.begin() + 129, out);
           }));
  barriers("nested_barriers", {small}, by_groups(i32, 960, 96, 0, [&](int base, int* out) {
             std::vector<int> ring(96), sum(96);
             for (int t = 0; t < 96; ++t) ring[t] = small.as<std::int32_t>()[base + t];
             for (int a = 0; a < 3; ++a) {
               std::vector<int> seen(96), now(96);
               for (int b = 0; b <= a; ++b) {
                 for (int t = 0; t < 96; ++t) now[t] = ring[(t + a + b) % 96];
                 for (int t = 0; t < 96; ++t) {
                   ring[t] = now[t] + b;
                   seen[t] += now[t];
                 }
               }
               for (int t = 0; t < 96; ++t) sum[t] = sum[t] * 3 + seen[t];
             }
             std::copy(sum.begin(), sum.end(), out);
           }));
  barriers("until_settled", {numbers}, by_groups(i32, n, 64, 0, [&](int base, int* out) {
             std::vector<int> a(64);
             for (int t = 0; t < 64; ++t) a[t] = v[base + t] % 100;
             int rounds = 0;
             for (bool changed = true; changed; ++rounds) {
               changed = false;
               for (int t = 0; t < 64; ++t)
                 if (a[t] > 3) {
                   a[t] -= 1 + t % 3;
                   changed = true;
                 }
             }
             for (int t = 0; t < 64; ++t) out[t] = rounds * 1000 + a[t];
           }));
  barriers("private_array", {numbers}, each_int({n}, [&](int i) {
             int t = i % 64, base = i - t, mine[8], sum = 0;
             for (int k = 0; k < 8; ++k) mine[k] = k * t;
             for (int k = 0; k < 8; ++k) mine[v[base + (t + k) % 64] & 7] += k + 1;
             for (int k = 0; k < 8; ++k) sum = sum * 5 + mine[v[base + (t * 3 + k) % 64] & 7];
             return sum;
           }));
  const literal matrix = floats({48, 32}, -1, 1);
  barriers("transpose_tile", {matrix},
           each_float({32, 48}, [&](int i) { return matrix.as<float>()[i % 48 * 32 + i / 48]; }));
  barriers("bitonic_sort", {numbers}, by_groups(i32, n, 256, 0, [&](int base, int* out) {
             std::copy(v.begin() + base, v.begin() + base + 256, out);
             std::sort(out, out + 256);
           }));
  const literal a = floats({32, 48}, -1, 1), b = floats({48, 64}, -1, 1);
  barriers("matmul_tile", {a, b}, each_float({32, 64}, [&](int i) {
             double sum = 0;
             for (int k = 0; k < 48; ++k)
               sum += static_cast<double>(a.as<float>()[i / 64 * 48 + k]) * b.as<float>()[k * 64 + i % 64];
             return sum;
           }));
  barriers("barrier_in_function", {numbers}, by_groups(i32, n, 64, 0, [&](int base, int* out) {
             std::vector<std::uint32_t> now(64);
             for (int t = 0; t < 64; ++t) now[t] = static_cast<std::uint32_t>(v[base + t]);
             for (std::uint32_t k = 0; k < 5; ++k) {
               auto before = now;
               for (int t = 0; t < 64; ++t) now[t] += before[(t + 1) % 64] * (k + 1);
             }
             for (int t = 0; t < 64; ++t) out[t] = static_cast<int>(now[t]);
           }));

  auto shared = [&](const char* name, std::vector<literal> inputs, literal expected) {
    add("shared.hip", name, std::move(inputs), std::move(expected));
  };
  shared("dynamic_two", {reals}, each_float({n}, [&](int i) {
           int other = i / 64 * 64 + 63 - i % 64;
           return x[other] * 3.0 + x[other];
         }));
  shared("static_and_dynamic", {numbers},
         each_int({n}, [&](int i) { return (i % 32 ? v[i - 1] : 1000) + i / 32 * 32 + 31 - i % 32; }));
  shared("shared_structs", {reals}, each_float({n}, [&](int i) {
           int other = (i % 64 * 5 + 1) % 64;
           return x[i / 64 * 64 + other] + static_cast<float>(other * 3 - 50) + static_cast<float>(other * 7 % 256);
         }));
  shared("shared_counter", {reals}, each_int({n / 256}, [&](int g) {
           return static_cast<int>(
               std::count_if(x.begin() + g * 256, x.begin() + g * 256 + 256, [](float f) { return f > 0; }));
         }));
  shared("shared_bytes", {numbers}, each_int({n}, [&](int i) {
           auto word = static_cast<std::uint32_t>(v[i ^ 3]);
           return static_cast<int>(__builtin_bswap32(word));
         }));
  shared("generic_pointer", {reals}, each_float({n}, [&](int i) {
           float other = x[i / 64 * 64 + 63 - i % 64];
           return x[i] > 0 ? other * 10 : other;
         }));

  auto atomics = [&](const char* name, std::vector<literal> inputs, literal expected) {
    add("atomics.hip", name, std::move(inputs), std::move(expected), 1e-4);
  };
  auto bins = [&](int count) {
    return each_int({count}, [&](int k) {
      return static_cast<int>(std::ranges::count_if(v, [&](int a) { return (a & (count - 1)) == k; }));
    });
  };
  atomics("histogram", {numbers}, bins(16));
  atomics("shared_histogram", {numbers}, bins(64));
  auto sums = [&](const literal& from, element_type type, int count) {
    std::vector<double> sum(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < n; ++i) sum[static_cast<std::size_t>(i % count)] += from.at(i);
    return literal::from_doubles({type, {count}}, sum);
  };
  const literal doubles = floats({n}, -1, 1, element_type::f64),
                longs = integers({n}, -(std::int64_t{1} << 40), std::int64_t{1} << 40, element_type::i64);
  atomics("add_float", {reals}, sums(reals, f32, 4));
  atomics("add_double", {doubles}, sums(doubles, element_type::f64, 4));
  atomics("add_long", {longs}, each<std::int64_t>(element_type::i64, {3}, [&](int k) {
            std::int64_t sum = 0;
            for (int i = k; i < n; i += 3) sum += longs.as<std::int64_t>()[i];
            return sum;
          }));
  const literal signs = integers({n}, -700, 900);
  atomics("extremes", {signs}, each_int({4}, [&](int k) {
            int low = 0, high = 0, least = 0;
            std::uint32_t mixed = 0;
            for (int a : signs.as<std::int32_t>()) {
              low = std::min(low, a), high = std::max(high, a), least = std::min(least, -a);
              mixed = std::max(mixed, static_cast<std::uint32_t>(a) * 2654435761u);
            }
            return k == 0 ? low : k == 1 ? high : k == 2 ? static_cast<int>(mixed) : least;
          }));
  literal some = integers({256}, 0, 1 << 30);
  atomics("bits", {some}, each_int({3}, [&](int k) {
            int either = 0, odd = 0, both = -1;
            for (int a : some.as<std::int32_t>())
              either |= static_cast<int>(1u << (a & 31)), odd ^= a, both &= ~(a & 0x40);
            return k == 0 ? either : k == 1 ? odd : both;
          }));
  atomics("float_extremes", {reals},
          each_float({2}, [&](int k) { return k == 0 ? *std::ranges::max_element(x) : *std::ranges::min_element(x); }));
  atomics("swap_loop", {numbers}, each_int({8}, [&](int k) {
            int sum = 0;
            for (int i = k; i < n; i += 8) sum += v[i] * v[i];
            return sum;
          }));
  atomics("tickets", {numbers}, each_int({n}, [](int) { return 1; }));
  atomics("wrap_counter", {numbers}, each_int({2}, [&](int k) {
            unsigned up = 0, down = 0;
            for (int i = 0; i < n; ++i) up = up >= 6 ? 0 : up + 1, down = down == 0 || down > 10 ? 10 : down - 1;
            return static_cast<int>(k == 0 ? up : down);
          }));
  atomics("exchange_slots", {numbers}, each_int({1}, [&](int) {
            int sum = 0;
            for (int a : v) sum += a;
            return sum;
          }));
}

}  // namespace kiln::corpus
