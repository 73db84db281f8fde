// Expected outputs of corpus/functions.hip, in plain C++.
#include <algorithm>
#include <bit>
#include <cmath>

#include "corpus.hpp"

namespace kiln::corpus {

namespace {

struct record {
  std::int32_t key;
  std::int16_t parts[3];
  std::uint8_t flag;
  float value;
};
static_assert(sizeof(record) == 16);

}  // namespace

void add_functions(std::vector<test_case>& all) {
  constexpr int n = 1000;
  const literal reals = floats({n}, -2, 2), numbers = integers({n}, 0, 100000);
  auto x = reals.as<float>();
  auto v = numbers.as<std::int32_t>();
  auto add = [&](const char* name, std::vector<literal> inputs, literal expected, double tolerance = 1e-5) {
    all.push_back({"functions.hip", name, std::move(inputs), {std::move(expected)}, tolerance});
  };

  auto polynomial = [](double a, std::vector<double> c) {
    double r = 0;
    for (double k : c) r = r * a + k;
    return r;
  };
  add("calls", {reals}, each_float({n}, [&](int i) {
        double a = x[i], b = x[(i + 1) % n];
        return polynomial(a, {0.5, -1.25, 2, 0.125, -3}) + polynomial(0.5, {a, 1, b}) * polynomial(a, {a, 1});
      }));
  add("calls_of_calls", {numbers}, each_int({n}, [&](int i) {
        int a = v[i];
        for (int k = 0; k < a % 4; ++k) a = (a * 4) & 0xffff;
        return a + 2 * i + 1;
      }));
  add("pointers_to_locals", {numbers}, each_int({n}, [&](int i) {
        int a[4] = {v[i], v[(i + 1) % n], v[(i + 2) % n], v[(i + 3) % n]};
        std::sort(a, a + 4);
        return a[0] + 3 * a[1] + 5 * a[2] + 7 * a[3];
      }));
  add("templates", {numbers}, each_int({n}, [&](int i) {
        int a = v[i] % 11, b = i % 7;
        return a * a * a + b * b - v[i];
      }));
  const literal points = floats({n}, -0.7, 0.4);
  add("complex_structs", {points}, each_float({n / 2}, [&](int i) {
        double re = 0, im = 0, a = points.at(2 * i), b = points.at(2 * i + 1);
        for (int k = 0; k < 5; ++k) {
          double next = re * re - im * im + a;
          im = 2 * re * im + b;
          re = next;
        }
        return re + im * 10;
      }));
  std::vector<record> before(n / 4), after;
  for (int i = 0; i < n / 4; ++i)
    before[static_cast<std::size_t>(i)] = {v[i],
                                           {static_cast<std::int16_t>(i), static_cast<std::int16_t>(-3 * i), 77},
                                           static_cast<std::uint8_t>(v[i] % 256),
                                           0};
  after = before;
  for (std::size_t i = 0; i < after.size(); ++i) {
    record& r = after[i];
    r.key += r.parts[i % 3];
    r.parts[(i + 1) % 3] = static_cast<std::int16_t>(r.flag * 3);
    r.flag ^= 0x5a;
    r.value = static_cast<float>(r.key) * 0.5f;
  }
  // Kernels and this program agree where the members lie; between them nothing is written.
  auto words_of = [&](const std::vector<record>& records) {
    return each_int({n}, [&](int i) { return reinterpret_cast<const std::int32_t*>(records.data())[i]; });
  };
  auto clean = [](std::vector<record>& records) {
    for (record& r : records) reinterpret_cast<unsigned char*>(&r)[11] = 0;
  };
  clean(before), clean(after);
  add("records", {words_of(before)}, words_of(after));
  add("unions", {reals}, each_int({n}, [&](int i) {
        auto b = std::bit_cast<std::uint32_t>(x[i]);
        return static_cast<int>((b & 0x00ffff00u) | b << 24 | b >> 24);
      }));
  add("constant_table", {numbers}, each_int({n}, [&](int i) {
        const int primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29}, local[] = {9, 7, 5, 3, 1, 200};
        return primes[v[i] % 10] * local[i % 6];
      }));
  add("stride_loop", {reals}, each_float({n}, [&](int i) { return x[i] + 3000 + 64; }));
  add("grid_of_three", {}, each<std::int32_t>(element_type::i32, {4, 6, 10}, [](int i) {
        return i % 10 + 100 * (i / 10 % 6) + 10000 * (i / 60) + 1000000 * (5 + 3 * 2) + 8;
      }));
  const literal matrix = floats({7, 333}, -1, 1);
  add("row_means", {matrix}, each_float({7}, [&](int r) {
        double sum = 0;
        for (int k = 0; k < 333; ++k) sum += matrix.at(r * 333 + k);
        return sum / 333;
      }));
  add("scalars", {reals}, each_float({n}, [&](int i) { return x[i] * 0.5f + 3; }));
  add("mathematics", {reals}, each_float({n}, [&](int i) {
        double a = x[i], m = std::fabs(a);
        return std::exp(a) + std::log(m + 0.1) + std::sin(a * 3) + std::cos(a) + std::tanh(a) + std::pow(m + 0.5, 1.5) +
               std::erf(a) + std::sqrt(m);
      }));
  add("builtin_mathematics", {reals}, each_float({n}, [&](int i) {
        double a = x[i];
        return std::exp(a) + std::log(a * a + 0.1) + std::sin(a) + std::cos(a) + std::pow(a * a + 0.5, 0.7) +
               std::exp2(a) + std::log2(a * a + 1) + std::log10(a * a + 2) +
               static_cast<double>(std::fmod(x[i] * 10, 3.0f));
      }));
}

}  // namespace kiln::corpus
