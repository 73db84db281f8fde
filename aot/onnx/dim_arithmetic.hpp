// Computes the value of a dimension's expression at run time. Counts of results whose size depends on data are tensors,
// so an expression over such counts is arithmetic on tensors.
#pragma once

#include <functional>
#include <string>

#include "ir/dim.hpp"
#include "ir/module.hpp"

namespace kiln::onnx_import {

// How value_of_dim adds what it needs to a module. All values are i64[1].
struct dim_emitter {
  std::function<value(operation op, std::vector<value> inputs)> add;
  std::function<value(std::int64_t number)> number;
  std::function<value(const std::string& symbol)> symbol;  // the value of one symbol
};

// The value of the expression as i64[1]. Symbols, and therefore numerators and divisors, must not be negative, but
// intermediate sums may be: a quotient is rounded down.
value value_of_dim(const dim& d, const dim_emitter& emit);

}  // namespace kiln::onnx_import
