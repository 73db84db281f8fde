// What the names of dimensions (dim_param) in a model mean. Exporters write expressions there: "past_sequence_length +
// sequence_length", "2*s0", "floor(height/2)". A name that reads as an expression of other dimensions becomes that
// expression; every other name is one symbol.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/dim.hpp"

namespace kiln::onnx_import {

struct dim_params {
  std::map<std::string, dim> meanings;              // by the name as the model writes it
  std::map<std::string, std::string> symbol_names;  // symbol → how the model writes it
};

// `names` in the order of the model's inputs. An expression is taken as one only where its symbols can be found out
// from the inputs: each is a dimension by itself, or this expression tells it. Throws error{invalid_model} where two
// names give one symbol.
dim_params read_dim_params(const std::vector<std::string>& names);

}  // namespace kiln::onnx_import
