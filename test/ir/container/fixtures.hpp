// Programs and files shared by the container's tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include "ir/container/container.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

inline literal ramp(const shape& s, double from = -2) {
  std::vector<double> values(static_cast<std::size_t>(s.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from + 0.5 * static_cast<double>(i);
  return literal::from_doubles(s, values);
}

// Symbolic shapes, every kind of attribute, shared, folded, empty and 4-bit constants, control flow, kernels, metadata.
inline program rich_program() {
  program p;
  module& body = p.add_module("body");
  body.add_parameter("iteration", {element_type::i64, {}});
  value go_on = body.add_parameter("condition", {element_type::boolean, {}});
  shape row{element_type::f32, {2, 3}};
  value carried = body.add_parameter("x", row);
  value doubled = body.add(elementwise{scalar_function::add}, {carried, carried});
  body.set_outputs({go_on, doubled, carried}, {"condition", "x", "seen"});
  module& yes = p.add_module("then");
  value y = yes.add_parameter("x", row);
  yes.set_outputs({yes.add(elementwise{scalar_function::mul}, {y, yes.add_constant(ramp(row))})}, {"y"});
  module& no = p.add_module("else");
  value n = no.add_parameter("x", row);
  no.set_outputs({n}, {"y"});

  module& m = p.main();
  dim batch = dim::symbol("batch");
  value image = m.add_parameter("image", {element_type::f32, {batch, 2 * batch + 1, 3}});
  value flip = m.add_parameter("flip", {element_type::boolean, {}});
  value input = m.add_parameter("input", row);
  value trips = m.add_constant(literal::of<std::int64_t>({element_type::i64, {}}, {3}));
  value always = m.add_constant(literal::scalar(element_type::boolean, 1));
  value weights = m.add_constant(ramp(row));
  value same_bytes = m.add_constant(ramp({element_type::f32, {3, 2}}));
  value ones = m.add_constant(literal::filled({element_type::f16, {5, 7}}, 1));
  value nibbles = m.add_constant(ramp({element_type::i4, {3}}));
  value nothing = m.add_constant(literal::filled({element_type::f32, {0, 4}}, 0));
  value looped = m.add(loop{1, 3}, {trips, always, input}, {&body});
  looped.producer->set_origin("Loop_7 (/layer1/loop)");
  value chosen = m.add(if_else{}, {flip, looped}, {&yes, &no});
  value sum = m.add(elementwise{scalar_function::add}, {chosen, weights});
  value product = m.add(dot{false, false, element_type::f32}, {sum, same_bytes});
  pad padding;
  padding.before = {1, 0};
  padding.after = {0, 2};
  padding.fill = -0.0;
  value padded = m.add(padding, {product});
  value moved = m.add(transpose{{2, 0, 1}}, {image});
  content_hash payload = p.add_kernel(bytes_of(std::string(300, 'k') + "portable"));
  value kernel = m.add(code_object::make("fused", code_format::mlir_bytecode, payload, "",
                                         {{element_type::f32, {batch, 4}}, {element_type::bf16, {3}}}),
                       {moved, padded});
  m.set_outputs({kernel, value{kernel.producer, 1}, value{looped.producer, 1}, ones, nibbles, nothing, padded},
                {"kernel", "second", "seen", "ones", "nibbles", "nothing", "padded"});
  p.symbols["batch"] = {1, 64, {1, 8}};
  p.metadata["producer"] = "test";
  p.metadata["options"] = "--fp16";
  p.validate();
  return p;
}

// A program that runs in the reference interpreter.
inline program small_program() {
  program p;
  module& m = p.main();
  shape s{element_type::f32, {3, 5}};
  value x = m.add_parameter("x", s);
  value scaled = m.add(elementwise{scalar_function::mul}, {x, m.add_constant(ramp(s))});
  value out = m.add(elementwise{scalar_function::add}, {scaled, m.add_constant(literal::filled(s, 0.25))});
  m.set_outputs({out}, {"y"});
  p.add_kernel(bytes_of("a kernel that nobody calls"));
  p.metadata["producer"] = "test";
  return p;
}

inline std::optional<error_kind> kind_of_reading(const std::filesystem::path& file) {
  try {
    check(file);
  } catch (const error& e) {
    return e.kind();
  }
  return std::nullopt;
}

}  // namespace kiln::testing
