// Recognizes the roles of a language model's inputs and outputs by their names. Names decide only where types and
// shapes leave a choice.
#pragma once

#include <string>
#include <string_view>

#include "ir/shape.hpp"

namespace kiln {

// The part that an input plays in a decoding step.
enum class input_role : std::uint8_t {
  tokens,          // ids [batch, sequence]
  mask,            // 1 for each key that counts [batch, past + sequence]
  positions,       // of the ids [batch, sequence], [sequence], [1] or, several times the same, [3, batch, sequence]
  past_length,     // number of ids before this step, one element
  total_length,    // the same with this step's ids, one element
  last_keys,       // for each sequence the number of its keys less one [batch]
  logits_row,      // index of the id of this step whose logits are computed, one element
  cache_branch,    // false in the first step, true in later ones; one element
  encoder_mask,    // 1 for each row of the encoder that counts [batch, encoder length]
  encoder_states,  // what the encoder computed [batch, encoder length, width]
  state,           // what an earlier step wrote, or zeros
  unknown,
};

// Returns the role of an input that holds no state, or `unknown`. An input of ids whose name says nothing is `unknown`.
input_role role_of(std::string_view name, const shape& type);

// Returns the name of a state without the words for "before" and "after", its other words sorted:
// "past_key_values.0.key" and "present.0.key" both give "0.key". Empty if nothing is left.
std::string state_key(std::string_view name);

// Whether a name says that the tensor is a cache or another state ("past", "cache", "state").
bool names_state(std::string_view name);

}  // namespace kiln
