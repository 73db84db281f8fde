// What this machine's processor can do, as far as the rows of ir/cpu_rows.hpp ask for it. Needs no compiler. Pure after
// the first call; any thread.
#pragma once

#include <string_view>

#include "ir/cpu_rows.hpp"

namespace kiln {

// Whether code compiled for the row runs on this machine.
bool runs_on_host(const cpu_row& row);

// The last row of the table that is meant for this machine. Null if the processor lacks what all rows need.
const cpu_row* best_host_row();

// Whether the processor has a feature that rows name, by LLVM's name of it ("i8mm", "avx512bf16"), and this process may
// use it: the first question about AMX asks Linux for the permission.
bool host_has_feature(std::string_view name);

// The length of an SVE register in bits; 0 without SVE.
int host_sve_bits();

// Who designed the core and which one it is, as MIDR_EL1 has them: 0x41 and 0xd40 are Arm's Neoverse V1. Zeros if the
// system does not tell, or on other processors.
struct host_core {
  unsigned designer = 0, part = 0;
};
host_core find_host_core();

}  // namespace kiln
