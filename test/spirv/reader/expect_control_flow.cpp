// Expected outputs of corpus/control_flow.hip, in plain C++.
#include <numeric>

#include "corpus.hpp"

namespace kiln::corpus {

void add_control_flow(std::vector<test_case>& all) {
  constexpr int n = 1000;
  const literal reals = floats({n}, -2, 2), numbers = integers({n}, 0, 5000), others = integers({n}, -20, 300);
  auto x = reals.as<float>();
  auto v = numbers.as<std::int32_t>();
  auto w = others.as<std::int32_t>();
  auto add = [&](const char* name, std::vector<literal> inputs, literal expected) {
    all.push_back({"control_flow.hip", name, std::move(inputs), {std::move(expected)}, 1e-6});
  };

  add("branch", {reals}, each_float({n}, [&](int i) { return x[i] < 0 ? -x[i] : x[i] * 2; }));
  add("ladder", {reals}, each_int({n}, [&](int i) {
        float a = x[i];
        if (a < -1) return 0;
        if (a < -0.5f) return a < -0.75f ? 1 : 2;
        if (a < 0.5f) return a < 0 ? 3 : a < 0.25f ? 4 : 5;
        return 6;
      }));
  add("loop_sum", {reals}, each_float({n}, [&](int i) {
        float sum = 0;
        for (int k = 0; k < i % 17; ++k) sum += x[(i + k) % n];
        return sum;
      }));
  add("loop_break", {numbers}, each_int({n}, [&](int i) {
        int k = 0;
        while (k < 1000 && k * k <= v[i]) ++k;
        return k;
      }));
  add("loop_continue", {numbers}, each_int({n}, [&](int i) {
        int sum = 0;
        for (int k = 0; k < 50; ++k)
          if (!((v[i] >> (k & 7)) & 1)) {
            sum += k;
            if (sum <= 300) sum += 2;
          }
        return sum;
      }));
  add("gcd", {numbers, integers({n}, 1, 999)},
      each_int({n}, [&, z = integers({n}, 1, 999)](int i) { return std::gcd(v[i], z.as<std::int32_t>()[i]); }));
  add("digits", {numbers}, each_int({n}, [&](int i) { return static_cast<int>(std::to_string(v[i]).size()); }));
  add("switch_dense", {numbers}, each_int({n}, [&](int i) {
        int a = v[i], r = 0;
        if (a % 8 == 5)
          for (int k = 0; k < a % 5; ++k) r += k * a;
        const int results[] = {a + 1, a * 3, a - 7, a ^ 0x55, a / 3, r, -a, 99};
        return results[a % 8];
      }));
  literal sparse = each_int({n}, [&](int i) {
    return i % 5 == 0 ? -5 : i % 5 == 1 ? 3 : i % 5 == 2 ? 100 : i % 5 == 3 ? 1 << 20 : i;
  });
  add("switch_sparse", {sparse}, each_int({n}, [&](int i) { return i % 5 < 4 ? i % 5 + 1 : i * 2; }));
  literal wide = each<std::int64_t>(element_type::i64, {n}, [&](int i) {
    return i % 4 == 0 ? 0x123456789abcL : i % 4 == 1 ? -0x123456789abcL : i % 4 == 2 ? 7L : 0x56789abcL;
  });
  add("switch_wide", {wide}, each_int({n}, [&](int i) {
        return i % 4 == 1 ? static_cast<int>(-0x123456789abcL & 15) : i % 4 == 0 ? 1 : i % 4 == 2 ? 3 : 4;
      }));
  add("fall_through", {numbers}, each_int({n}, [&](int i) {
        int a = v[i], r = 0;
        switch (a & 7) {
          case 7: return 64 + 32 * a + 16;
          case 5: return 32 * a + 16;
          case 3: return 16;
          case 2: return (r ^ a) + 5;
          case 1: return 5;
          default: return 1;
        }
      }));
  add("irreducible", {numbers}, each_int({n}, [&](int i) {
        int a = v[i], steps = 0;
        bool odd = a & 1;
        while (true) {
          if (!odd) {
            a -= 3;
            ++steps;
            if (a < 0) break;
          }
          a -= 5;
          steps += 10;
          odd = a % 7 == 0;
          if (!odd && a < 0) break;
        }
        return steps * 1000 + a;
      }));
  add("collatz", {numbers}, each_int({n}, [&](int i) {
        std::int64_t a = v[i] + 1;
        int steps = 0;
        while (a != 1 && steps < 500) {
          a = a % 2 ? 3 * a + 1 : a / 2;
          ++steps;
        }
        return steps;
      }));
  literal divisors = integers({n}, 0, 12);
  add("short_circuit", {others, divisors}, each_int({n}, [&, z = divisors.as<std::int32_t>()](int i) {
        int a = w[i], b = z[i];
        bool p = b != 0 && a / b > 2;
        if (!p && a > 10) p = b == 0 || a % b == 1;
        return p ? (a > b ? 1 : 2) : (a == b ? 3 : 4);
      }));
  add("nested_break", {numbers}, each_int({n}, [&](int i) {
        int primes = 0;
        for (int p = 2; p < 60 && p <= v[i] % 64; ++p) {
          int divisors = 0;
          for (int d = 1; d <= p; ++d) divisors += p % d == 0;
          primes += divisors == 2;
        }
        return primes;
      }));
}

}  // namespace kiln::corpus
