// The decoding loop: prompts in, new ids out, one step after another. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "generation/decoder.hpp"
#include "generation/sampling.hpp"

namespace kiln {

struct generation_options {
  // Most new ids of a row; 0: as many as the context has room for, but at most 64.
  std::int64_t max_new_tokens = 0;
  sampling_options sampling;           // row r has the seed `seed + r`
  std::vector<std::int64_t> stop_ids;  // a row ends with the first of them
  // First id of a decoder whose encoder reads the prompts. A decoder behind any other encoder begins with the prompts.
  std::int64_t decoder_start = 0;
  std::map<std::string, literal> encoder_inputs = {};  // that are no ids, by name
};

// Called after each step with the new id of each row, or -1 for a row that has ended. Returns false to stop.
using step_observer = std::function<bool(const std::vector<std::int64_t>& ids)>;

// Returns the new ids of each row, with the stop id that ended it. Starts new sequences. Throws what decoder::append
// throws; error{context_full} for prompts that leave no room for max_new_tokens.
id_rows generate(decoder& model, const id_rows& prompts, const generation_options& options,
                 const step_observer& observe);

}  // namespace kiln
