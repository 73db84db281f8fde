// The fusions that the tests and measurements of this folder compile: one anchor and an epilogue.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ir/module.hpp"
#include "ir/ops/all.hpp"

namespace kiln::test {

using dims_of = std::vector<std::int64_t>;

enum class epilogue { none, bias_relu, bias_relu_residual, sigmoid, two_outputs };
inline std::array<epilogue, 5> all_epilogues() {
  return {epilogue::none, epilogue::bias_relu, epilogue::bias_relu_residual, epilogue::sigmoid, epilogue::two_outputs};
}

inline shape shape_of(element_type type, const dims_of& dims) {
  return {type, std::vector<dim>(dims.begin(), dims.end())};
}

// Appends the epilogue to `result` and sets the outputs.
inline void finish(module& m, value result, epilogue kind) {
  const std::vector<dim> dims = result.type().dims;
  auto apply = [&](scalar_function f, std::vector<value> inputs) { return m.add(elementwise{f}, std::move(inputs)); };
  auto bias = [&](value v) {
    value b = m.add_parameter("bias", {v.type().type, {dims.back()}});
    return apply(scalar_function::add, {v, m.add(broadcast{dims}, {b})});
  };
  switch (kind) {
    case epilogue::none: break;
    case epilogue::bias_relu: result = apply(scalar_function::relu, {bias(result)}); break;
    case epilogue::bias_relu_residual: {
      value sum = bias(result);
      result = apply(scalar_function::relu,
                     {apply(scalar_function::add, {sum, m.add_parameter("residual", result.type())})});
      break;
    }
    case epilogue::sigmoid:
      result = apply(scalar_function::mul, {result, apply(scalar_function::sigmoid, {result})});
      break;
    case epilogue::two_outputs: {
      value relu = apply(scalar_function::relu, {bias(result)});
      m.set_outputs({result, relu}, {"raw", "relu"});
      return;
    }
  }
  m.set_outputs({result}, {"y"});
}

inline std::unique_ptr<module> dot_fusion(const dims_of& a, const dims_of& b, dot op,
                                          element_type a_type = element_type::f32,
                                          element_type b_type = element_type::f32, epilogue kind = epilogue::none) {
  auto m = std::make_unique<module>("kernel");
  value left = m->add_parameter("a", shape_of(a_type, a)), right = m->add_parameter("b", shape_of(b_type, b));
  finish(*m, m->add(op, {left, right}), kind);
  return m;
}

template <class Convolution>
std::unique_ptr<module> convolution_fusion(const dims_of& image, const dims_of& weights, Convolution op,
                                           element_type type = element_type::f32, epilogue kind = epilogue::none) {
  auto m = std::make_unique<module>("kernel");
  op.layout = tensor_layout::channels_last;
  value x = m->add_parameter("x", shape_of(type, image)), w = m->add_parameter("w", shape_of(type, weights));
  finish(*m, m->add(op, {x, w}), kind);
  return m;
}

// The same with an image of which `before` channels precede the convolution's and `after` follow them.
template <class Convolution>
std::unique_ptr<module> channels_fusion(const dims_of& image, std::int64_t before, std::int64_t after,
                                        const dims_of& weights, Convolution op, element_type type = element_type::f32,
                                        epilogue kind = epilogue::none) {
  auto m = std::make_unique<module>("kernel");
  op.layout = tensor_layout::channels_last;
  dims_of whole = image, starts(image.size(), 0);
  whole.back() += before + after;
  starts.back() = before;
  value x = m->add_parameter("x", shape_of(type, whole)), w = m->add_parameter("w", shape_of(type, weights));
  value part = m->add(slice{starts, {image.begin(), image.end()}, dims_of(image.size(), 1)}, {x});
  finish(*m, m->add(op, {part, w}), kind);
  return m;
}

}  // namespace kiln::test
