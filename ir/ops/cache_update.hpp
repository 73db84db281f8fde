// Writes new rows into a cache of keys or values.
#pragma once

#include "ir/operation.hpp"

namespace kiln {

// inputs: cache [batch, ..., room, ...]; rows [batch, ..., count, ...], whose dims equal the cache's except along
// `axis`, which is not 0; positions [1] or [batch] (i32 or i64). output: the cache with the rows of batch b written
// along `axis` from index positions[b] on. Positions are clamped to [0, room - count].
//
// A fourth input, layer [1] (i32 or i64), is for the caches of several layers in one tensor, one after another along
// the first axis: the rows belong to the cache of this layer, which has as many batches as they. It is clamped, too.
//
// A kernel of this operation may write into the cache itself instead of a copy (launch::copies in native_kernel.hpp).
struct cache_update {
  std::int64_t axis = 1;

  std::string_view name() const { return "cache_update"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("axis", self.axis);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Programs of decoders that update their caches in place (aot/caches_in_place.hpp): the dimension of the room that all
// caches have, the input (i64[1]) with the number of rows that they hold, and the metadata with the name of the
// dimension that has the same value.
inline constexpr const char* cache_room = "cache_room";
inline constexpr const char* cache_length = "cache_length";
// Their input (i64[1]) with the index of the id of a step for which logits are wanted, if they compute no others.
inline constexpr const char* logits_row = "logits_row";
// Their output [batch, 1] with the id of the largest of these logits, which the next step may read as its ids.
inline constexpr const char* next_ids = "next_ids";

}  // namespace kiln
