// Interprets the names of dimensions (dim_param) in a model. Exporters write expressions there: "past_sequence_length +
// sequence_length", "2*s0", "floor(height/2)". A name that parses as an expression of other dimensions becomes that
// expression; every other name is one symbol.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/dim.hpp"

namespace kiln::onnx_import {

struct dim_params {
  std::map<std::string, dim> meanings;              // by the name as written in the model
  std::map<std::string, std::string> symbol_names;  // symbol → its name in the model
};

// `names` are in the order of the model's inputs. A name is treated as an expression only if its symbols can be
// computed from the inputs: each symbol is a dimension by itself, or can be solved for from this expression. Throws
// error{invalid_model} if two names give the same symbol.
dim_params read_dim_params(const std::vector<std::string>& names);

}  // namespace kiln::onnx_import
