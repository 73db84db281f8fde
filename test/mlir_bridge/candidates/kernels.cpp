#include "kernels.hpp"

#include "../../mlir_bridge/cpu/harness.hpp"

namespace kiln::test {

namespace {

constexpr element_type f16 = element_type::f16;
using in = const std::vector<value>&;

std::unique_ptr<module> one(const std::vector<shape>& inputs, operation op) {
  return fusion(inputs, [&](module& m, in p) { return std::vector<value>{m.add(op, p)}; });
}

// With an epilogue.
std::unique_ptr<module> relu_of(const std::vector<shape>& inputs, operation op) {
  return fusion(inputs, [&](module& m, in p) {
    return std::vector<value>{m.add(elementwise{scalar_function::relu}, {m.add(op, p)})};
  });
}

convolution convolved(std::int64_t stride, std::int64_t pad, std::int64_t groups) {
  return {{stride, stride}, {1, 1}, {pad, pad}, {pad, pad}, groups, tensor_layout::channels_last};
}

}  // namespace

std::vector<named_kernel> kernels_of_every_kind() {
  std::vector<named_kernel> all;
  auto add = [&](std::string name, std::unique_ptr<module> fusion) {
    all.push_back({std::move(name), std::move(fusion)});
  };
  for (element_type type : {element_type::f32, f16}) {
    const std::string suffix = std::string(" ") + std::string(name(type));
    dot plain{.type = type}, transposed{.transpose_b = true, .type = type};
    add("dot" + suffix, relu_of({typed(type, {65, 200}), typed(type, {200, 72})}, plain));
    add("dot of few rows" + suffix, one({typed(type, {4, 264}), typed(type, {136, 264})}, transposed));
    add("convolution" + suffix,
        relu_of({typed(type, {1, 9, 11, 40}), typed(type, {3, 3, 40, 24})}, convolved(1, 1, 1)));
    add("map" + suffix, fusion({typed(type, {37, 515}), typed(type, {37, 515})}, [](module& m, in p) {
          return std::vector<value>{
              m.add(elementwise{scalar_function::sigmoid}, {m.add(elementwise{scalar_function::add}, {p[0], p[1]})})};
        }));
    add("softmax" + suffix, one({typed(type, {33, 520})}, softmax{-1, false}));
    attention heads{.scale = 0.125};
    add("attention" + suffix,
        one({typed(type, {1, 2, 70, 64}), typed(type, {1, 2, 150, 64}), typed(type, {1, 2, 150, 64})}, heads));
  }
  add("one row", one({f32({1, 300}), f32({300, 70})}, dot{.type = element_type::f32}));
  add("one row, transposed",
      one({f32({3, 1, 130}), f32({3, 40, 130})}, dot{.transpose_b = true, .type = element_type::f32}));
  add("long k", one({f32({15, 2048}), f32({2048, 40})}, dot{.type = element_type::f32}));
  add("pointwise", one({f32({2, 7, 5, 24}), f32({1, 1, 24, 40})}, convolved(1, 0, 1)));
  add("deep convolution", one({f32({1, 5, 7, 256}), f32({3, 3, 256, 20})}, convolved(2, 1, 1)));
  add("convolution of few products", relu_of({f32({1, 9, 11, 32}), f32({3, 3, 32, 64})}, convolved(1, 1, 1)));
  add("depthwise", one({f32({1, 13, 15, 24}), f32({3, 3, 1, 24})}, convolved(1, 1, 24)));
  add("normalized depthwise", fusion({f32({1, 9, 13, 24}), f32({3, 3, 1, 24})}, [](module& m, in p) {
        return std::vector<value>{m.add(normalize{{3}, 1e-5, true}, {m.add(convolved(1, 1, 24), p)})};
      }));
  transposed_convolution up{{2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1};
  up.layout = tensor_layout::channels_last;
  add("transposed convolution", one({f32({1, 5, 6, 24}), f32({3, 3, 16, 24})}, up));
  add("transpose", one({f32({70, 90})}, transpose{{1, 0}}));
  add("normalize", one({f32({21, 770})}, normalize{{1}, 1e-5, true}));
  add("reduce", one({f32({5, 6000})}, reduce{reduction_kind::sum, {1}, false}));
  add("reduce of columns", one({f32({300, 44})}, reduce{reduction_kind::max, {0}, false}));
  add("arg_reduce", one({f32({9, 1500})}, arg_reduce{.axis = 1}));
  pooling window{.kind = pooling_kind::max,
                 .window = {3, 3},
                 .strides = {2, 2},
                 .dilations = {1, 1},
                 .pads_begin = {1, 1},
                 .pads_end = {1, 1}};
  window.layout = tensor_layout::channels_last;
  add("pooling", one({f32({1, 15, 17, 24})}, window));
  add("cumulative_sum", one({f32({7, 1300})}, cumulative_sum{1, false, false}));
  add("top_k", fusion({f32({3, 5000})}, [](module& m, in p) {
        value best = m.add(top_k{5, 1, true}, p);
        return std::vector<value>{best, {best.producer, 1}};
      }));
  return all;
}

}  // namespace kiln::test
