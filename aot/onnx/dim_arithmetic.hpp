// Computes the value of a dimension's expression at run time. Counts of results whose size depends on data are tensors,
// so an expression over such counts is arithmetic on tensors.
#pragma once

#include <functional>
#include <string>

#include "ir/dim.hpp"
#include "ir/module.hpp"

namespace kiln::onnx_import {

// Callbacks with which value_of_dim adds constants and operations to a module. All values are i64[1].
struct dim_emitter {
  std::function<value(operation op, std::vector<value> inputs)> add;
  std::function<value(std::int64_t number)> number;
  // Returns the value of a symbol.
  std::function<value(const std::string& symbol)> symbol;
};

// Returns the value of the expression as i64[1]. Symbols must not be negative, and so numerators and divisors are not.
// Intermediate sums may be negative: a quotient is rounded down.
value value_of_dim(const dim& d, const dim_emitter& emit);

}  // namespace kiln::onnx_import
