// The section `signature`: one signature block (ir/trust/keys.hpp) that vouches for the native code objects of a file.
// It covers the line "Kiln native program 1" and then, for each of the sections manifest, program, kernels and
// weights_index, its row of the table without the place in the file. So a signed kernel cannot be given other launches,
// other tensors or another graph, and none can be moved into another file. Extras are not covered: embedded objects
// have signatures of their own.
#pragma once

#include "ir/container/sections.hpp"

namespace kiln::container {

bool holds_native(const program& p);

// The section, for a file that will hold these.
packed_section sign_native(const std::vector<packed_section>& sections, const signing_key& key);

// Throws untrusted_native unless `consent` trusts who signed, and error{corrupted} for a signature that is not right.
void require_consent(open_container& file, const native_consent& consent);

}  // namespace kiln::container
