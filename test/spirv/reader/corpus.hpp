// The corpus: HIP kernels (corpus/*.hip) with their inputs and expected outputs, which plain C++ computes. Used by the
// tests that run it on the host, by test/long/spirv_corpus.py (emulator, GPU) and by the fuzzer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/literal.hpp"

namespace kiln::corpus {

struct test_case {
  std::string file;  // in corpus/
  std::string name;  // of the operator
  std::vector<literal> inputs, expected;
  double tolerance = 0;  // of floats: |got - expected| <= tolerance * (1 + |expected|)
};

std::vector<test_case> cases();

// Returns a description of the difference between `got` and `expected`, or an empty string.
std::string difference(const literal& got, const literal& expected, double tolerance);

// Inputs, the same on every machine: a generator of its own, since the library's distributions are not.
literal floats(std::vector<std::int64_t> dims, double low, double high, element_type type = element_type::f32);
literal integers(std::vector<std::int64_t> dims, std::int64_t low, std::int64_t high,
                 element_type type = element_type::i32);

// An output of `count` elements (or of `dims`) computed one by one.
template <class T, class Function>
literal each(element_type type, std::vector<std::int64_t> dims, Function function) {
  std::int64_t count = 1;
  shape s{type, {}};
  for (std::int64_t d : dims) {
    count *= d;
    s.dims.push_back(d);
  }
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<T>(function(static_cast<int>(i)));
  return literal::of(s, values);
}
template <class Function>
literal each_float(std::vector<std::int64_t> dims, Function function) {
  return each<float>(element_type::f32, std::move(dims), function);
}
template <class Function>
literal each_int(std::vector<std::int64_t> dims, Function function) {
  return each<std::int32_t>(element_type::i32, std::move(dims), function);
}

void add_control_flow(std::vector<test_case>& all);
void add_workgroups(std::vector<test_case>& all);
void add_lanes(std::vector<test_case>& all);
void add_types(std::vector<test_case>& all);
void add_functions(std::vector<test_case>& all);
void add_header(std::vector<test_case>& all);

}  // namespace kiln::corpus
