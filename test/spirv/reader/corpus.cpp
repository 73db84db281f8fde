#include "corpus.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kiln::corpus {
namespace {

// splitmix64 (S. Vigna), begun anew for each tensor.
class generator {
 public:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_ = 42;
};

shape shape_of(element_type type, const std::vector<std::int64_t>& dims) {
  shape s{type, {}};
  for (std::int64_t d : dims) s.dims.push_back(d);
  return s;
}

}  // namespace

literal floats(std::vector<std::int64_t> dims, double low, double high, element_type type) {
  generator random;
  shape s = shape_of(type, dims);
  std::vector<double> values(static_cast<std::size_t>(s.element_count()));
  for (double& v : values)
    v = low + (high - low) * static_cast<double>(random.next() >> 40) / static_cast<double>(1 << 24);
  return literal::from_doubles(s, values);
}

literal integers(std::vector<std::int64_t> dims, std::int64_t low, std::int64_t high, element_type type) {
  generator random;
  shape s = shape_of(type, dims);
  std::vector<std::byte> bytes(s.bytes());
  std::size_t width = bytes.size() / static_cast<std::size_t>(s.element_count());
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    std::int64_t v = low + static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(high - low));
    std::memcpy(bytes.data() + at, &v, width);
  }
  return literal(s, std::move(bytes));
}

std::vector<test_case> cases() {
  std::vector<test_case> all;
  add_control_flow(all);
  add_workgroups(all);
  add_lanes(all);
  add_types(all);
  add_functions(all);
  add_header(all);
  return all;
}

std::string difference(const literal& got, const literal& expected, double tolerance) {
  if (got.type() != expected.type())
    return fmt::format("a {} instead of a {}", got.type().str(), expected.type().str());
  for (std::int64_t i = 0; i < got.type().element_count(); ++i) {
    if (is_float(got.type().type)) {
      double a = got.at(i), b = expected.at(i);
      if (!(std::abs(a - b) <= tolerance * (1 + std::abs(b))) && !(std::isnan(a) && std::isnan(b)))
        return fmt::format("element {} is {} instead of {}", i, a, b);
    } else if (got.at_int(i) != expected.at_int(i)) {
      return fmt::format("element {} is {} instead of {}", i, got.at_int(i), expected.at_int(i));
    }
  }
  return "";
}

}  // namespace kiln::corpus
