// Finds out which input and output of a decoder is what: token ids, mask, positions, logits, and the states that one
// step writes and the next one reads. Types, shapes and the program's structure decide first, names where these leave a
// choice (port_names.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "generation/port_names.hpp"
#include "generation/state_pairs.hpp"
#include "ir/program.hpp"

namespace kiln {

struct decoder_ports {
  std::vector<input_role> inputs;  // one for each parameter of the main module
  std::size_t tokens = 0;          // place among the parameters
  std::size_t logits = 0;          // place among the outputs
  // Place among the outputs of the likeliest next ids (ir/ops/cache_update.hpp).
  std::optional<std::size_t> next_ids;
  std::vector<state_port> states;
  std::optional<std::string> branch;  // symbol of the cache_branch input's value

  std::optional<std::size_t> place_of(input_role role) const;
  bool has_past() const;  // whether there is a state with an input
};

// Throws error{unsupported} that names the input or output that cannot be matched.
decoder_ports recognize_decoder(const program& p);

// Of an encoder: its ids and mask, other inputs such as sound (`unknown`), and the states that it computes (its first
// float output of rank 3).
struct encoder_ports {
  std::vector<input_role> inputs;
  std::optional<std::size_t> tokens;
  std::size_t states = 0;
};
encoder_ports recognize_encoder(const program& p);

}  // namespace kiln
