// What passes need to change the parameters of a Loop's body.
#pragma once

#include <cstddef>
#include <map>

#include "ir/module.hpp"
#include "ir/ops/structure.hpp"
#include "ir/program.hpp"

namespace kiln {

// The number of body parameters in front of the invariants: iteration, condition, carried values.
inline std::size_t first_invariant(const loop& op) { return 2 + static_cast<std::size_t>(op.carried); }

// Adds a parameter for an invariant behind the others, with a name that no other has. Its instruction stands before
// everything that the body computes.
value add_invariant(module& body, const shape& type);

// How many instructions of the program have each module as a body. Only bodies with one user may be changed.
std::map<const module*, std::size_t> body_uses(program& p);

}  // namespace kiln
