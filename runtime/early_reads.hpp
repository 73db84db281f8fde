// Which launches may read memory before the launches in front of them have ended (launch::early_arguments).
#pragma once

#include "runtime/plan.hpp"

namespace kiln {

// Clears launch_step::waits of launches that read memory early which an earlier step of the run may still be writing.
// Constants may always be read early. So may an input or output of the run, such as a cache that the launch itself
// appends to, if no step before it writes to it and the plan has neither branches nor loops. Runs follow one another
// completely: only launches within a graph begin early. Buffers of the arena change their contents within a run.
void forbid_unsafe_early_reads(plan& of);

}  // namespace kiln
