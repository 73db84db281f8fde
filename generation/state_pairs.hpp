// Pairs the inputs of a decoder that hold states with the outputs that become these inputs in the next step.
#pragma once

#include <set>
#include <vector>

#include "generation/decoder_ports.hpp"

namespace kiln {

// `open` are the places of the inputs that have no other role, `sequence` is the number of ids of a step, and `branch`
// the symbol of a flag that is 1 in later steps. Pairs have equal types and ranks, and their shapes are equal or differ
// by `sequence` along one axis. Among several outputs the one of the same name wins, then the one that the fewest
// operations separate from the input, then the first. Inputs without an output are left out.
std::vector<state_port> pair_states(const program& p, const std::set<std::size_t>& open, const dim& sequence,
                                    const std::optional<std::string>& branch);

}  // namespace kiln
