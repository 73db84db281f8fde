// The states of a decoder, and how they are found: pairs the inputs of a decoder that hold states with the outputs that
// become these inputs in the next step.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
  // The input is a cache with room for more rows, which the step updates. There is no output.
  bool in_place = false;
};

// An input of merged decoders that is true in later steps.
struct step_flag {
  std::optional<std::string> symbol;  // 1 in later steps, if the flag decides shapes
  bool is_data = false;               // there is a flag that decides no shapes
};

// `open` are the places of the inputs that have no other role, and `sequence` is the number of ids of a step. Pairs
// have equal types and ranks, and their shapes are equal or differ by `sequence` along one axis. Among several outputs
// the one of the same name wins, then the one that the fewest operations separate from the input, then the first.
// Inputs without an output are left out.
std::vector<state_port> pair_states(const program& p, const std::set<std::size_t>& open, const dim& sequence,
                                    const step_flag& flag);

}  // namespace kiln
