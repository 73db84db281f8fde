// One batch of sequences of a decoder: their ids, caches and other states. A decoder works on one batch at a
// time; others wait in objects like this. Used by one thread at a time; the device of the decoder must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "generation/sequence_state.hpp"
#include "ir/shape.hpp"

namespace kiln {

using id_rows = std::vector<std::vector<std::int64_t>>;

// The result of an encoder, and a mask of its valid rows.
struct encoded_prompt {
  shape type;             // [batch, length, width]
  growing_memory states;  // of the encoder's device
  std::vector<std::int64_t> mask;
};

struct sequence_batch {
  sequence_state state;
  // All ids so far, with padding. Rows are shorter than `past` if the device chose ids: these are not kept.
  id_rows history;
  id_rows masks;          // for each id, whether it counts
  std::int64_t past = 0;  // ids of each sequence so far, with padding
  std::optional<encoded_prompt> encoded;
};

// Copies the tensors within the device's memory and waits for that.
sequence_batch copy_of(device& on, const sequence_batch& batch);

}  // namespace kiln
