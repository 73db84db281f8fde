// Replaces a product with constant weights whose input is another one, A(B(x)), by one product with the composed
// weights, where the composition is exact (linear_map.hpp) and saves work by the rule below. Products are convolutions
// and matrix products; the first one may have a bias. Chains of three and more are composed pair by pair.
//
// Runs on channels_first convolutions, after factors and batch normalizations have gone into the weights.
#pragma once

#include "aot/passes/linear_map.hpp"
#include "aot/passes/pass.hpp"

namespace kiln {

class rewrite_log;

// Work in units of one multiplication: multiplications, and a price for each element of memory traffic.
double estimated_cost(double products, double elements_moved);

// Whether the composition costs less than both maps and the intermediate result between them.
bool composition_saves_work(const linear_map& outer, const linear_map& inner, const linear_map& composed);

struct compose_contractions {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "compose_contractions"; }
  bool apply(module& m) const;
};

}  // namespace kiln
