// Dropout.
#include <random>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"

namespace kiln::onnx_import {
namespace {

// True where an element is kept. The generator is numpy's for this seed (53 bits from two draws of MT19937), as in the
// standard's reference, so the mask is the same in each run.
value kept_elements(node& n, double ratio) {
  const shape type = n.type(0).with_type(element_type::boolean);
  if (!type.is_static()) refuse("training_mode is on and the shape " + type.str() + " is open; give it with --dim");
  auto count = static_cast<std::size_t>(type.element_count());
  constexpr std::size_t most = std::size_t{1} << 26;
  if (count > most)
    refuse("training_mode is on for " + std::to_string(count) + " elements; export the model for inference");
  n.owner.state().budget.take_copy(count);
  std::mt19937 draw(static_cast<std::uint32_t>(n.integer("seed", 0)));
  std::vector<std::byte> kept(count);
  for (auto& k : kept) {
    double high = draw() >> 5, low = draw() >> 6;
    k = static_cast<std::byte>((high * 67108864.0 + low) / 9007199254740992.0 >= ratio);
  }
  return n.b.constant(literal(type, std::move(kept)));
}

std::vector<value> dropout(node& n) {
  builder& b = n.b;
  bool training = n.opset < 7 ? n.integer("is_test", 0) == 0
                              : n.opset >= 12 && n.has(2) && n.constant(2, "training_mode").at_int(0);
  double ratio = !training ? 0 : n.opset < 7 ? n.real("ratio", 0.5) : n.has(1) ? n.number(1, "ratio") : 0.5;
  if (ratio == 0)
    return {n.in(0), b.broadcast_to(b.scalar(n.opset < 10 ? n.type(0).type : element_type::boolean, 1), n.dims(0))};
  if (!(ratio > 0 && ratio < 1)) invalid("the ratio is " + std::to_string(ratio) + ", not in [0, 1)");
  if (!n.has_attribute("seed"))
    refuse(
        "training_mode is on without a seed: each run would need other random numbers; export the model for "
        "inference");
  value kept = kept_elements(n, ratio), scaled = b.binary(scalar_function::mul, n.in(0), 1 / (1 - ratio));
  return {b.where(kept, scaled, b.scalar(scaled.type().type, 0)), kept};
}

constexpr operator_row rows[] = {{"Dropout", dropout, 6, "training_mode only with a seed"}};

}  // namespace

std::span<const operator_row> dropout_operators() { return rows; }

}  // namespace kiln::onnx_import
