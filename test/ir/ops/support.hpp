// Small tensors and comparisons for the tests of ir/ops and ir/reference.
#pragma once

#include <cmath>
#include <functional>
#include <initializer_list>
#include <numeric>

#include <gtest/gtest.h>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"

namespace kiln::testing {

using extents = std::vector<std::int64_t>;

inline shape shape_of(element_type type, const extents& dims) { return {type, {dims.begin(), dims.end()}}; }

inline literal tensor(element_type type, const extents& dims, const std::vector<double>& values) {
  return literal::from_doubles(shape_of(type, dims), values);
}
inline literal tensor(const extents& dims, const std::vector<double>& values) {
  return tensor(element_type::f32, dims, values);
}
inline literal indices(const extents& dims, const std::vector<std::int64_t>& values) {
  return literal::of(shape_of(element_type::i64, dims), values);
}

// Multiples of 1/8 between -11/8 and 11/8: exact in every type and in every order of summation used here. The same
// formula made the inputs of the expectations that were taken from onnxruntime 1.31.
inline literal pattern(const extents& dims, std::int64_t seed, element_type type = element_type::f32) {
  auto count = std::accumulate(dims.begin(), dims.end(), std::int64_t(1), std::multiplies<>());
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>((i * 37 + seed * 11) % 23 - 11) / (is_float(type) ? 8 : 1));
  return tensor(type, dims, values);
}

template <class Op>
std::vector<literal> run_all(const Op& op, const std::vector<literal>& inputs) {
  std::vector<shape> shapes;
  for (const literal& input : inputs) shapes.push_back(input.type());
  auto results = op.evaluate(inputs);
  auto expected = op.infer(shapes);
  EXPECT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].type().str(), expected[i].str());
  return results;
}
template <class Op>
literal run(const Op& op, const std::vector<literal>& inputs) {
  return run_all(op, inputs).at(0);
}

inline void expect_values(const literal& actual, const extents& dims, const std::vector<double>& expected,
                          double tolerance = 0) {
  ASSERT_EQ(actual.type().static_dims(), dims);
  auto values = actual.to_doubles();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) EXPECT_TRUE(std::isnan(values[i])) << "element " << i << " is " << values[i];
    else if (std::isinf(expected[i])) EXPECT_EQ(values[i], expected[i]) << "element " << i;
    else EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i;
  }
}

inline void expect_integers(const literal& actual, const extents& dims, const std::vector<std::int64_t>& expected) {
  ASSERT_EQ(actual.type().static_dims(), dims);
  EXPECT_EQ(actual.to_int64(), expected);
}

// Image and weights from channels_first to channels_last and back: [B, C, s...] ↔ [B, s..., C]; [F, C, w...] → [w...,
// C, F].
inline literal image_to_last(const literal& image) {
  transpose t{{0}};
  for (std::size_t i = 2; i < image.type().rank(); ++i) t.permutation.push_back(static_cast<std::int64_t>(i));
  t.permutation.push_back(1);
  return run(t, {image});
}
inline literal image_to_first(const literal& image) {
  transpose t{{0, static_cast<std::int64_t>(image.type().rank()) - 1}};
  for (std::size_t i = 1; i + 1 < image.type().rank(); ++i) t.permutation.push_back(static_cast<std::int64_t>(i));
  return run(t, {image});
}
inline literal weights_to_last(const literal& weights) {
  transpose t;
  for (std::size_t i = 2; i < weights.type().rank(); ++i) t.permutation.push_back(static_cast<std::int64_t>(i));
  t.permutation.insert(t.permutation.end(), {1, 0});
  return run(t, {weights});
}

template <class F>
void expect_error(error_kind kind, const std::string& part, const F& f) {
  try {
    f();
    ADD_FAILURE() << "nothing was thrown; expected: " << part;
  } catch (const error& e) {
    EXPECT_EQ(name(e.kind()), name(kind)) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

}  // namespace kiln::testing
