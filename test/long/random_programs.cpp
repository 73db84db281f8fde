// Compares random programs with and without optimization: both must give the same numbers in the reference interpreter.
//
//     random_programs [--trials N] [--seed N] [--only SEED] [--disable-pass NAME...] [--rules]
//
// As a test it runs 1,000 trials (a few seconds); `random_programs --trials 100000 --seed 1` is the long form. A trial
// is determined by its seed. Programs have up to 16 operations: elementwise with broadcasting, movement, reductions,
// normalizations, products, convolutions in chains and branches, pooling. If numbers differ, exits with 1 and prints
// the seed, the element and both programs. --only repeats one trial, --disable-pass helps to find the wrong pass, and
// --rules prints how often each rewrite fired.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "aot/pipeline.hpp"
#include "aot/rewrite_log.hpp"
#include "ir/ops/all.hpp"
#include "ir/program.hpp"

namespace {

using namespace kiln;
using enum scalar_function;
using sizes = std::vector<std::int64_t>;

constexpr std::int64_t most_elements = 3000;

class generator {
 public:
  generator(program& p, std::uint64_t seed) : m_(p.main()), random_(seed) {}

  void build() {
    const std::int64_t inputs = 1 + below(2);
    for (std::int64_t i = 0; i < inputs; ++i) {
      const std::size_t rank = static_cast<std::size_t>(below(3) == 0 ? 1 + below(4) : 4);
      sizes dims;
      for (std::size_t k = 0; k < rank; ++k) dims.push_back(rank == 4 && k > 0 ? 2 + below(7) : 1 + below(6));
      if (rank == 4) dims[1] = std::int64_t{1} << below(4);
      values_.push_back(m_.add_parameter("x" + std::to_string(i), {element_type::f32, {dims.begin(), dims.end()}}));
    }
    const std::int64_t steps = 3 + below(14);
    for (std::int64_t i = 0; i < steps; ++i) step();
    std::vector<value> outputs{values_.back()};
    if (below(3) == 0) outputs.push_back(any());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < outputs.size(); ++i) names.push_back("y" + std::to_string(i));
    m_.set_outputs(outputs, names);
  }

 private:
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  bool coin() { return below(2) == 0; }

  // Selects recent values more often than old ones, so that chains grow.
  value any() {
    const auto count = static_cast<std::int64_t>(values_.size());
    return values_[static_cast<std::size_t>(count - 1 -
                                            below(below(4) == 0 ? count : std::min<std::int64_t>(count, 4)))];
  }
  static sizes dims_of(value v) { return v.type().static_dims(); }
  void keep(value v) {
    if (v.type().element_count() > 0 && v.type().element_count() <= most_elements && v.type().rank() <= 6)
      values_.push_back(v);
  }

  value constant(const sizes& dims, double scale = 1) {
    const shape type{element_type::f32, {dims.begin(), dims.end()}};
    std::vector<double> numbers(static_cast<std::size_t>(type.element_count()));
    std::uniform_real_distribution<> uniform(-scale, scale);
    if (below(6) == 0) std::ranges::fill(numbers, below(3) == 0 ? below(2) : uniform(random_));
    else std::ranges::generate(numbers, [&] { return uniform(random_); });
    return m_.add_constant(literal::from_doubles(type, numbers));
  }
  value stretched(value v, const sizes& dims) {
    return dims_of(v) == dims ? v : m_.add(broadcast{{dims.begin(), dims.end()}}, {v});
  }
  value reshaped(value v, const sizes& dims) { return m_.add(reshape{{dims.begin(), dims.end()}}, {v}); }

  void step() {
    switch (below(16)) {
      case 0:
      case 1: return unary();
      case 2:
      case 3:
      case 4: return binary();
      case 5: return transposition();
      case 6: return reshaping();
      case 7: return slicing();
      case 8: return joining();
      case 9: return padding();
      case 10: return reducing();
      case 11: return rows();
      case 12: return product();
      case 13: return gathering();
      case 14: return pooled();
      default: return convolutions();
    }
  }

  void unary() {
    constexpr std::array functions{neg, abs, relu, tanh, sigmoid};
    value v = any();
    value y = m_.add(elementwise{functions[static_cast<std::size_t>(below(functions.size()))]}, {v});
    keep(coin() ? m_.add(elementwise{mul}, {v, y}) : y);
  }

  void binary() {
    constexpr std::array functions{add, sub, mul, max, min};
    value v = any(), other;
    const sizes dims = dims_of(v);
    for (value candidate : values_)
      if (candidate != v && dims_of(candidate) == dims && coin()) other = candidate;
    if (!other) {
      sizes narrow(dims.begin() + below(static_cast<std::int64_t>(dims.size()) + 1), dims.end());
      const bool along_one = coin() && !narrow.empty();
      const std::int64_t kept = along_one ? below(static_cast<std::int64_t>(narrow.size())) : -1;
      for (std::size_t i = 0; i < narrow.size(); ++i)
        if (along_one ? static_cast<std::int64_t>(i) != kept : below(3) == 0) narrow[i] = 1;
      other = stretched(constant(narrow), dims);
    }
    std::vector<value> operands{v, other};
    if (coin()) std::swap(operands[0], operands[1]);
    keep(m_.add(elementwise{functions[static_cast<std::size_t>(below(functions.size()))]}, operands));
  }

  void transposition() {
    value v = any();
    sizes order(v.type().rank());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random_);
    keep(m_.add(transpose{order}, {v}));
  }

  void reshaping() {
    value v = any();
    sizes dims;
    std::int64_t rest = v.type().element_count();
    while (dims.size() < 5 && (rest > 1 || coin())) {
      sizes divisors;
      for (std::int64_t d = 1; d <= rest; ++d)
        if (rest % d == 0) divisors.push_back(d);
      dims.push_back(divisors[static_cast<std::size_t>(below(static_cast<std::int64_t>(divisors.size())))]);
      rest /= dims.back();
    }
    if (rest > 1) dims.push_back(rest);
    keep(reshaped(v, dims));
  }

  void slicing() {
    value v = any();
    const sizes dims = dims_of(v);
    slice s;
    for (std::int64_t extent : dims) {
      const std::int64_t step = below(4) == 0 ? 2 : 1, start = coin() ? 0 : below(extent);
      std::int64_t length = (extent - start + step - 1) / step;
      if (coin()) length = 1 + below(length);
      const bool backwards = below(8) == 0;
      s.starts.push_back(backwards ? start + (length - 1) * step : start);
      s.steps.push_back(backwards ? -step : step);
      s.lengths.push_back(length);
    }
    keep(m_.add(s, {v}));
  }

  void joining() {
    value v = any(), other = any();
    const sizes dims = dims_of(v), more = dims_of(other);
    if (dims.empty()) return;
    const std::size_t axis = static_cast<std::size_t>(below(static_cast<std::int64_t>(dims.size())));
    bool fits = dims.size() == more.size();
    for (std::size_t i = 0; fits && i < dims.size(); ++i) fits = i == axis || dims[i] == more[i];
    keep(m_.add(concat{static_cast<std::int64_t>(axis)}, {v, fits ? other : v}));
  }

  void padding() {
    value v = any();
    pad p;
    p.mode = below(3) == 0 ? pad_mode::edge : pad_mode::constant_;
    p.fill = coin() ? 0 : 0.5;
    for (std::size_t i = 0; i < v.type().rank(); ++i) p.before.push_back(below(3) % 2), p.after.push_back(below(3) % 2);
    keep(m_.add(p, {v}));
  }

  sizes some_axes(value v) {
    sizes axes;
    for (std::size_t i = 0; i < v.type().rank(); ++i)
      if (coin()) axes.push_back(static_cast<std::int64_t>(i));
    if (axes.empty() && v.type().rank() > 0) axes.push_back(below(static_cast<std::int64_t>(v.type().rank())));
    return axes;
  }

  void reducing() {
    constexpr std::array kinds{reduction_kind::sum, reduction_kind::mean, reduction_kind::max};
    value v = any();
    if (v.type().rank() > 0) keep(m_.add(reduce{kinds[static_cast<std::size_t>(below(3))], some_axes(v), coin()}, {v}));
  }

  void rows() {
    value v = any();
    if (v.type().rank() == 0) return;
    if (coin()) keep(m_.add(softmax{below(static_cast<std::int64_t>(v.type().rank()))}, {v}));
    else keep(m_.add(normalize{some_axes(v), 1e-1, coin()}, {v}));
  }

  // Adds one or more products of the same operand, perhaps in a chain, perhaps with biases.
  void product() {
    value v = any();
    sizes dims = dims_of(v);
    if (dims.size() < 2) return;
    const std::int64_t products = 1 + below(3);
    for (std::int64_t i = 0; i < products; ++i) {
      value y = v;
      const std::int64_t chain = 1 + below(3) / 2;
      for (std::int64_t k = 0; k < chain; ++k) {
        dot d{.transpose_b = coin()};
        const std::int64_t inner = dims_of(y).back(), columns = 1 + below(8);
        sizes matrix = d.transpose_b ? sizes{columns, inner} : sizes{inner, columns};
        sizes batched(dims.begin(), dims.end() - 2);
        batched.insert(batched.end(), matrix.begin(), matrix.end());
        y = m_.add(d, {y, stretched(constant(matrix, 0.5), batched)});
        if (coin()) y = m_.add(elementwise{add}, {y, stretched(constant({columns}), dims_of(y))});
      }
      keep(coin() ? m_.add(softmax{static_cast<std::int64_t>(dims.size()) - 1}, {y}) : y);
    }
  }

  void gathering() {
    value v = any();
    if (v.type().rank() == 0) return;
    const std::int64_t axis = below(static_cast<std::int64_t>(v.type().rank())), count = 1 + below(4),
                       extent = dims_of(v)[static_cast<std::size_t>(axis)];
    std::vector<double> indices;
    const std::int64_t first = below(extent);
    for (std::int64_t i = 0; i < count; ++i)
      indices.push_back(static_cast<double>(coin() ? (first + i) % extent : below(extent)));
    keep(m_.add(gather{axis}, {v, m_.add_constant(literal::from_doubles({element_type::i64, {count}}, indices))}));
  }

  // Returns the image of the last rank-4 value, if there is one.
  value image() {
    for (std::size_t i = values_.size(); i-- > 0;)
      if (values_[i].type().rank() == 4) return values_[i];
    return {};
  }

  void pooled() {
    value v = image();
    if (!v) return;
    const sizes dims = dims_of(v);
    pooling p;
    p.kind = coin() ? pooling_kind::max : pooling_kind::average;
    for (std::size_t i = 2; i < 4; ++i) {
      const std::int64_t window = 1 + below(std::min<std::int64_t>(dims[i], 3)), pad_ = window > 1 ? below(2) : 0;
      p.window.push_back(window), p.strides.push_back(1 + below(2)), p.dilations.push_back(1);
      p.pads_begin.push_back(pad_), p.pads_end.push_back(pad_);
    }
    keep(m_.add(p, {v}));
  }

  // Returns a convolution of `v`, or null if the image is smaller than the window.
  value convolved(value v, std::int64_t most_window, std::int64_t stride, std::int64_t filters_per_group) {
    const sizes dims = dims_of(v);
    sizes group_choices;
    for (std::int64_t g = 1; g <= dims[1]; ++g)
      if (dims[1] % g == 0) group_choices.push_back(g);
    convolution c;
    c.groups =
        coin() ? 1 : group_choices[static_cast<std::size_t>(below(static_cast<std::int64_t>(group_choices.size())))];
    sizes weights{c.groups * filters_per_group, dims[1] / c.groups};
    for (std::size_t i = 2; i < 4; ++i) {
      const std::int64_t window = 1 + below(most_window), dilation = 1 + below(2), border = coin() ? 0 : below(3);
      if (dims[i] + 2 * border < dilation * (window - 1) + 1) return {};
      c.strides.push_back(stride), c.dilations.push_back(dilation);
      c.pads_begin.push_back(border), c.pads_end.push_back(border);
      weights.push_back(window);
    }
    return m_.add(c, {v, constant(weights, 0.5)});
  }

  value shifted(value v) {
    const std::int64_t channels = dims_of(v)[1];
    if (coin()) v = m_.add(elementwise{add}, {v, stretched(constant({channels, 1, 1}), dims_of(v))});
    if (below(4) == 0) v = m_.add(elementwise{mul}, {v, stretched(constant({channels, 1, 1}), dims_of(v))});
    return v;
  }

  // Adds a chain of convolutions without activations, or branches of one image whose results are summed.
  void convolutions() {
    const value x = image();
    if (!x) return;
    if (coin()) {
      value y = x;
      const std::int64_t length = 1 + below(3);
      for (std::int64_t i = 0; i < length && y; ++i)
        if (y = convolved(y, coin() ? 1 : 3, 1 + below(4) / 3, 1 + below(6)); y) {
          if (y.type().element_count() > most_elements) return;
          keep(y = shifted(y));
        }
      return;
    }
    const std::int64_t branches = 2 + below(2), stride = 1 + below(2), filters = 1 + below(4);
    value sum;
    for (std::int64_t i = 0; i < branches; ++i) {
      value y = convolved(x, 3, stride, filters);
      if (!y || y.type().element_count() > most_elements) continue;
      y = shifted(y);
      if (sum && dims_of(sum) == dims_of(y)) sum = m_.add(elementwise{add}, {sum, y});
      else keep(sum = y);
    }
    if (!sum) return;
    if (dims_of(sum) == dims_of(x) && coin()) sum = m_.add(elementwise{add}, {sum, shifted(x)});
    keep(sum);
  }

  kiln::module& m_;
  std::mt19937_64 random_;
  std::vector<value> values_;
};

std::vector<literal> run(const program& p, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<> uniform(-1, 1);
  std::vector<literal> inputs;
  for (value v : p.main().parameters()) {
    std::vector<double> numbers(static_cast<std::size_t>(v.type().element_count()));
    std::ranges::generate(numbers, [&] { return uniform(random); });
    inputs.push_back(literal::from_doubles(v.type(), numbers));
  }
  return evaluate(p.main(), inputs);
}

// Returns a description of the first difference, or an empty string if all numbers agree up to rounding.
std::string difference(const std::vector<literal>& expected, const std::vector<literal>& actual) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].type() != actual[i].type()) return fmt::format("output {} has another shape", i);
    const auto e = expected[i].to_doubles(), a = actual[i].to_doubles();
    double largest = 1;
    for (double number : e)
      if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
    for (std::size_t k = 0; k < e.size(); ++k) {
      const bool same = std::isfinite(e[k]) ? std::abs(e[k] - a[k]) <= 2e-4 * largest
                                            : (std::isnan(e[k]) ? std::isnan(a[k]) : e[k] == a[k]);
      if (!same) return fmt::format("output {} element {}: {} instead of {}", i, k, a[k], e[k]);
    }
  }
  return {};
}

// Returns true if results agree; otherwise prints both programs.
bool trial(std::uint64_t seed, const compile_options& options) {
  program plain, optimized;
  generator(plain, seed).build();
  generator(optimized, seed).build();
  std::string wrong;
  try {
    plain.validate();
    optimize(optimized, options);
    optimized.validate();
    wrong = difference(run(plain, seed), run(optimized, seed));
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  if (!wrong.empty())
    fmt::print("seed {}: {}\n--- as generated\n{}--- optimized\n{}\n", seed, wrong, plain.main().str(),
               optimized.main().str());
  return wrong.empty();
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t trials = 1000, seed = 1;
  std::optional<std::uint64_t> only;
  bool rules = false;
  compile_options options;
  rewrite_log log;
  options.log = &log;
  CLI::App app{"Random programs, optimized and not"};
  app.add_option("--trials", trials);
  app.add_option("--seed", seed, "Seed of the first trial; the next ones count up");
  app.add_option("--only", only, "Seed of the only trial");
  app.add_option("--disable-pass", options.disabled);
  app.add_flag("--rules", rules);
  CLI11_PARSE(app, argc, argv);
  if (only) return trial(*only, options) ? 0 : 1;
  for (std::uint64_t i = 0; i < trials; ++i)
    if (!trial(seed + i, options)) return 1;
  if (rules)
    for (const auto& [key, record] : log.rewrites()) fmt::print("{:8} {}/{}\n", record.count, key.first, key.second);
  fmt::print("{} programs give the same numbers optimized and not\n", trials);
  return 0;
}
