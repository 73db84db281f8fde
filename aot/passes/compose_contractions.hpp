// Replaces two products with constant weights in sequence, A(B(x)), by one product with composed weights, if the
// composition is exact (linear_map.hpp) and reduces the estimated cost. Products are convolutions and matrix products;
// the inner one may have a bias. Longer chains are composed pair by pair.
//
// Runs on channels_first convolutions, after factors and batch normalizations have been folded into the weights.
#pragma once

#include "aot/passes/linear_map.hpp"
#include "aot/passes/pass.hpp"

namespace kiln {

class rewrite_log;

// Estimated cost in units of one multiplication: the multiplications plus a price per element of memory traffic.
double estimated_cost(double products, double elements_moved);

// Returns true if the composition costs less than the two maps and the memory traffic of the intermediate result.
bool composition_saves_work(const linear_map& outer, const linear_map& inner, const linear_map& composed);

struct compose_contractions {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "compose_contractions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
