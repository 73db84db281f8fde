// Finds out which input and output of a decoder is what: token ids, mask, positions, logits, and the states that one
// step writes and the next one reads. Types, shapes and the program's structure decide first, names where these leave a
// choice (port_names.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "generation/port_names.hpp"
#include "ir/program.hpp"

namespace kiln {

// A tensor that a step reads and writes. Either place may be missing: the first model of a pair only writes states, and
// what was computed from the encoder is only read.
struct state_port {
  std::string key;  // equal in the models of a folder
  std::optional<std::size_t> input, output;
  std::optional<std::size_t> axis;  // along which the output has `sequence` elements more than the input
  // The output is a result only in the first step; later steps keep the tensor that they read.
  bool written_once = false;
};

struct decoder_ports {
  std::vector<input_role> inputs;  // one for each parameter of the main module
  std::size_t tokens = 0;          // place among the parameters
  std::size_t logits = 0;          // place among the outputs
  std::vector<state_port> states;
  std::optional<std::string> branch;  // symbol of the cache_branch input's value

  std::optional<std::size_t> place_of(input_role role) const;
  bool has_past() const;  // whether there is a state with an input
};

// Throws error{unsupported} that names the input or output that cannot be matched.
decoder_ports recognize_decoder(const program& p);

// Of an encoder: ids, mask and the states it computes (its first float output of rank 3).
struct encoder_ports {
  std::vector<input_role> inputs;
  std::size_t tokens = 0, states = 0;
};
encoder_ports recognize_encoder(const program& p);

}  // namespace kiln
