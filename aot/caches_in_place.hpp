// The form of a decoder that updates its caches of keys and values in place. A decoder as exporters write it takes the
// rows of earlier steps and returns them with the new ones appended, so every step copies all rows. Here the cache is
// an input with room for more rows; a step writes its rows behind those that are there (ir/ops/cache_update.hpp) and
// returns nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "ir/program.hpp"

namespace kiln {

// An input with earlier rows, and the output that has the new ones appended along the axis.
struct cache_port {
  std::string input, output;
  std::size_t axis = 0;
};

// Returns a copy of `optimized`, which has no kernels yet, in which caches are updated in place. It has these
// differences; all other inputs keep their shapes:
//  * a cache that the program appends to with a Concat, and reads, loses its output; its input has `cache_room` rows;
//  * a new input, `cache_length`, is the number of rows in use (ir/ops/cache_update.hpp). All caches must have it in
//    common;
//  * if the output called `logits` [batch, sequence, vocabulary] is a product, it is computed for one id only. Another
//    new input, `logits_row`, is the index of this id;
//  * then, if the input called `ids` [batch, sequence] is given, a new output, `next_ids`, is the likeliest next id of
//    each sequence: the first of equal ones, and never one whose logit is a NaN.
// Returns nullopt if there is no such cache.
std::optional<program> with_caches_in_place(const program& optimized, std::span<const cache_port> ports,
                                            const std::string& logits = {}, const std::string& ids = {});

}  // namespace kiln
