// Sizes that data decide without a bound, such as the length of speech, which is the sum of durations that the model
// predicts. In the program, each such size is a symbol "value.NAME.i", as are elements of inputs that decide sizes
// (bind_shapes.hpp), but NAME is a tensor that the model computes. An output of the main module is marked with
// `data_sizes` (ir/ops/data_sizes.hpp), which says which value each symbol has.
// The sizes are found in stages, before the program is bound: the part of the program that computes the first of these
// values has no such symbol in it and can run. If more symbols depend on tensors of these sizes, another stage follows.
// Pure functions; any thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace kiln {

// The symbols that stand in shapes and attributes of the program's instructions.
std::set<std::string> symbols_in(const program& p);

// The symbols that data decide, in the order of `data_sizes`; empty for most programs.
std::vector<std::string> data_decided_sizes(const program& p);
bool has_data_decided_sizes(const program& p);

// The names of the inputs from which these sizes are computed.
std::set<std::string> inputs_deciding_sizes(const program& p);

struct size_stage {
  // The part of the program that computes these symbols: output i, i64[1], is the value of symbols[i]. Its inputs
  // and open dimensions are those that the part reads.
  program source;
  std::vector<std::string> symbols;
};

// The stages in the order in which they must run. Throws error{invalid_model} if a size depends on itself.
std::vector<size_stage> size_stages(const program& p);

}  // namespace kiln
