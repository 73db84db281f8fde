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

// Returns the program with those caches in place that it appends to with a Concat and reads, if all hold the same
// number of rows. These lose their output, their input has `cache_room` rows, and the program has one more input,
// `cache_length` (ir/ops/cache_update.hpp). Other inputs keep their sizes. If the output called `logits` [batch,
// sequence, vocabulary] is a product, only the logits of one id are computed, whose index is another input,
// `logits_row`: of a prompt only the last ones are needed. Returns nullopt if there is no such cache. `optimized` has
// no kernels yet.
std::optional<program> with_caches_in_place(const program& optimized, std::span<const cache_port> ports,
                                            const std::string& logits = {});

}  // namespace kiln
