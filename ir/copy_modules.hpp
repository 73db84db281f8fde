// Copies of programs. program::clone() and program::bind() are implemented here, too.
#pragma once

#include "ir/program.hpp"

namespace kiln {

// Returns a clone in which every choice is replaced by the body that it takes for these sizes. The dims stay symbolic.
// Throws what module::add throws: a choice's result has dims that select between those of its bodies, and users of the
// result may need them.
program decide_choices(const program& p, const dim_bindings& sizes);

}  // namespace kiln
