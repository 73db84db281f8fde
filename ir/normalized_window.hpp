// Recognizes a normalization over the channels of what a depthwise convolution computes, as ConvNeXt has it. One kernel
// can compute all channels of a pixel and normalize them before it stores them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ir/instruction.hpp"
#include "ir/ops/contraction.hpp"
#include "ir/ops/elementwise.hpp"
#include "ir/ops/movement.hpp"
#include "ir/ops/reduction.hpp"
#include "ir/ops/structure.hpp"

namespace kiln {

// Such a kernel keeps a pixel's channels in the registers of a workgroup, or pixels of a line on the stack.
inline constexpr std::int64_t most_normalized_channels = 2048;

namespace detail {

// Returns true for a constant or a parameter, also if it is moved or converted.
inline bool is_given(value v) {
  while (v.producer->op().is<broadcast>() || v.producer->op().is<reshape>() || v.producer->op().is<transpose>() ||
         v.producer->op().is<convert>())
    v = v.producer->inputs()[0];
  return v.producer->op().is<constant>() || v.producer->op().is<parameter>();
}

// Returns true if all dims but the first, the number of images, are known and not 0.
inline bool has_known_images(const shape& s) {
  return s.rank() > 1 &&
         std::all_of(s.dims.begin() + 1, s.dims.end(), [](const dim& d) { return d.is_static() && d.value() > 0; }) &&
         !(s.dims[0] == dim(0));
}

inline bool is_normalizable_window(const instruction& at) {
  const auto* c = at.op().get_if<convolution>();
  if (!c || c->layout != tensor_layout::channels_last || c->groups == 1 || !has_known_images(at.outputs()[0]) ||
      !has_known_images(at.inputs()[0].type()) || !at.inputs()[1].type().is_static())
    return false;
  const element_type type = at.outputs()[0].type;
  const std::int64_t in = at.inputs()[0].type().dims.back().value(), out = at.outputs()[0].dims.back().value();
  // Generators compute 8 channels or fewer at a time, so a multiple of 8 leaves no rest.
  constexpr std::int64_t vector = 8;
  return (type == element_type::f32 || type == element_type::f16 || type == element_type::bf16) && in == c->groups &&
         out == in && out % vector == 0 && out <= most_normalized_channels;
}

}  // namespace detail

// Returns the convolution whose result the instruction normalizes; null if there is none. Between the two there may be
// additions and multiplications of constants or parameters, and conversions. Nothing else may read what is in between.
inline const instruction* find_normalized_window(const instruction& at) {
  constexpr int most_between = 4;
  const auto* n = at.op().get_if<normalize>();
  if (!n || n->axes.size() != 1 || n->axes[0] + 1 != static_cast<std::int64_t>(at.outputs()[0].rank())) return nullptr;
  value v = at.inputs()[0];
  for (int between = 0; between <= most_between; ++between) {
    const instruction& from = *v.producer;
    if (from.users().size() != 1) return nullptr;
    if (detail::is_normalizable_window(from)) return &from;
    const auto* e = from.op().get_if<elementwise>();
    if (from.op().is<convert>() && is_float(from.outputs()[0].type)) {
      v = from.inputs()[0];
    } else if (e && (e->function == scalar_function::add || e->function == scalar_function::sub ||
                     e->function == scalar_function::mul)) {
      const std::size_t given = detail::is_given(from.inputs()[0]) ? 0 : 1;
      if (!detail::is_given(from.inputs()[given])) return nullptr;
      v = from.inputs()[1 - given];
    } else {
      return nullptr;
    }
  }
  return nullptr;
}

}  // namespace kiln
