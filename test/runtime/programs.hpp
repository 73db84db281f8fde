// Programs built by hand over the kernels of kernels/tensors.c.
#pragma once

#include <gtest/gtest.h>

#include "ir/native_kernel.hpp"
#include "ir/ops/all.hpp"
#include "ir/program.hpp"
#include "objects.hpp"
#include "runtime/executable.hpp"
#include "runtime/host_device.hpp"
#include "runtime/io_buffers.hpp"

namespace kiln::testing {

inline constexpr std::int64_t n = 37;  // N of kernels/tensors.c
inline const shape vector_type{element_type::f32, {n}};
inline const shape scalar_type{element_type::f32, {}};
inline const shape flag_type{element_type::boolean, {}};
inline const shape count_type{element_type::i64, {}};

inline launch_argument in(std::uint32_t i) { return {buffer_kind::input, i}; }
inline launch_argument out(std::uint32_t i) { return {buffer_kind::output, i}; }
inline launch_argument scratch(std::uint32_t i) { return {buffer_kind::scratch, i}; }

inline launch make_launch(const char* symbol, std::int64_t grid, std::vector<launch_argument> arguments,
                          bool prepare = false) {
  launch l;
  l.symbol = symbol;
  l.grid = grid;
  l.arguments = std::move(arguments);
  l.prepare = prepare;
  l.waits = true;
  return l;
}

// The device that programs are made for: the host (kernels/tensors.c) unless a test sets another one.
struct kernel_flavour {
  std::vector<std::byte> (*object)() = [] { return read_object("tensors"); };
  const char* target = objects_target;
};
inline kernel_flavour flavour;

inline native_kernel make_kernel(std::vector<launch> launches, std::vector<scratch_buffer> scratch_buffers = {}) {
  native_kernel kernel;
  kernel.object = flavour.object();
  kernel.launches = std::move(launches);
  kernel.scratch = std::move(scratch_buffers);
  return kernel;
}

// Returns an instruction that runs `kernel`, in the form that the just-in-time compiler creates.
inline value call(program& p, module& m, const char* symbol, const native_kernel& kernel, std::vector<value> inputs,
                  const std::vector<shape>& outputs) {
  auto hash = p.add_kernel(serialize(kernel));
  value v = m.add(code_object::make(symbol, code_format::native, hash, flavour.target, outputs), std::move(inputs));
  v.producer->set_origin(std::string("node of ") + symbol);
  return v;
}

inline value add(program& p, module& m, value a, value b) {
  return call(p, m, "add", make_kernel({make_launch("add", n, {in(0), in(1), out(0)})}), {a, b}, {vector_type});
}
inline value twice(program& p, module& m, value a) {
  return call(p, m, "twice", make_kernel({make_launch("twice", n, {in(0), out(0)})}), {a}, {vector_type});
}
inline value exponential(program& p, module& m, value a) {
  return call(p, m, "exponential", make_kernel({make_launch("exponential", n, {in(0), out(0)})}), {a}, {vector_type});
}
inline value plus_minus(program& p, module& m, value a) {
  return call(p, m, "plus_minus", make_kernel({make_launch("plus_minus", n, {in(0), out(0), out(1)})}), {a},
              {vector_type, vector_type});
}
inline value sum(program& p, module& m, value a) {
  return call(
      p, m, "sum",
      make_kernel({make_launch("sum_parts", 5, {in(0), scratch(0)}), make_launch("sum_total", 1, {scratch(0), out(0)})},
                  {{5 * sizeof(float), false}}),
      {a}, {scalar_type});
}
inline value below_limit(program& p, module& m, value a) {
  return call(p, m, "below_limit", make_kernel({make_launch("below_limit", 1, {in(0), out(0)})}), {a}, {flag_type});
}
inline value add_iteration(program& p, module& m, value i, value a) {
  return call(p, m, "add_iteration", make_kernel({make_launch("add_iteration", n, {in(0), in(1), out(0)})}), {i, a},
              {vector_type});
}
// x * reversed weights; a prepare launch reverses them.
inline value multiply_packed(program& p, module& m, value x, value weights) {
  return call(p, m, "multiply_packed",
              make_kernel({make_launch("reverse", n, {in(1), scratch(0)}, true),
                           make_launch("multiply", n, {in(0), scratch(0), out(0)})},
                          {{n * sizeof(float), true}}),
              {x, weights}, {vector_type});
}

inline std::vector<float> ramp(float first = 0.0f, float step = 1.0f) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = first + step * static_cast<float>(i);
  return v;
}
inline literal vector_literal(const std::vector<float>& v) { return literal::of(vector_type, v); }
inline std::vector<float> floats(const literal& l) { return {l.as<float>().begin(), l.as<float>().end()}; }

// Runs with the arena and the outputs filled with NaN.
inline std::vector<literal> run_poisoned(const executable& e, const std::vector<literal>& inputs) {
  execution_context context = e.make_context();
  io_buffers tensors(e);
  auto poison = [&](std::span<std::byte> memory) {
    std::vector<std::byte> nans(memory.size(), std::byte{0xFF});
    e.target().upload(memory.data(), nans.data(), nans.size());
  };
  poison(context.arena());
  for (executable::output_span out : tensors.outputs()) poison(out);
  tensors.upload(inputs);
  e.run(context, tensors.inputs(), tensors.outputs());
  return tensors.download();
}

}  // namespace kiln::testing
