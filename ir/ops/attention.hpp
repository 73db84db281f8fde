// Scaled dot-product attention per head: softmax(scale · Q Kᵀ + mask) V.
#pragma once

#include "ir/operation.hpp"

namespace kiln {

// Position of the head axis: [B..., H, S, D] or [B..., S, H, D]. A projection to H*D columns gives the latter without a
// transpose.
enum class head_layout : std::uint8_t { heads_first, sequence_first };
template <>
struct enum_table<head_layout> {
  static constexpr std::array<std::string_view, 2> names{"heads_first", "sequence_first"};
};

// inputs: query [B..., H, Sq, D], key [B..., G, Sk, D], value [B..., G, Sk, Dv], and an optional mask. Query, key and
// value have the same floating element type and rank (3 or more), and a layout each. H is a multiple of G; query head h
// reads key and value head h / (H / G).
// mask: broadcasts (numpy's rule) to [B..., H, Sq, Sk], whatever the layouts. A floating mask of any type is added to
// the scaled scores. A boolean mask removes the scores where it is false, like adding -inf.
// causal: query i attends to the keys j <= i + (Sk - Sq), so the last query attends to all keys.
// output: [B..., H, Sq, Dv] in output_layout, with the element type of query. Scores, softmax and sums are f32 or
// wider; the softmax weights may be rounded to the element type before they are multiplied with the values. A row whose
// keys are all masked is NaN, as the softmax of all -inf is.
struct attention {
  double scale = 1;
  bool causal = false;
  head_layout query_layout = head_layout::heads_first;
  head_layout key_layout = head_layout::heads_first;
  head_layout value_layout = head_layout::heads_first;
  head_layout output_layout = head_layout::heads_first;

  std::string_view name() const { return "attention"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("scale", self.scale);
    f("causal", self.causal);
    f("query_layout", self.query_layout);
    f("key_layout", self.key_layout);
    f("value_layout", self.value_layout);
    f("output_layout", self.output_layout);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Positions of the head and sequence axes in a tensor of this rank. The last axis is the depth; the axes before these
// are batch.
struct head_axes {
  head_axes(head_layout layout, std::size_t rank)
      : head(rank - (layout == head_layout::heads_first ? 3 : 2)),
        position(rank - (layout == head_layout::heads_first ? 2 : 3)) {}
  std::size_t head, position;
};

// The extents of one attention, with the batch dims multiplied. Throws while a dim is symbolic.
struct attention_extents {
  attention_extents(const attention& op, const shape& query, const shape& key, const shape& value);
  std::int64_t batch, heads, key_heads, queries, keys, depth, value_depth;
};

}  // namespace kiln
