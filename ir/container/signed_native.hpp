// The section `signature`: one signature block (ir/trust/keys.hpp) for the native code objects of a file and for its
// HIP kernels that are not Kiln's own (ir/trust/known_kernels.hpp), which can do as much. The signature covers the line
// "Kiln native program 1", followed by the table rows (without file offsets) of the sections manifest, program,
// kernels, weights_index and, if there is one, steps. So an attacker can neither change the launches, tensors or graph
// of a signed kernel nor move it into another file. Extras are not covered, because embedded objects have their own
// signatures.
#pragma once

#include "ir/container/sections.hpp"
#include "ir/trust/keys.hpp"

namespace kiln::container {

bool holds_native(const program& p);

// Whether a kernel of the program is in amdgcnspirv and not one of Kiln's own. Its payload decides, not the format that
// the file states, because compilers go by the payload.
bool holds_custom_kernels(const program& p);

// Whether the program runs only with a trusted signature.
bool needs_consent(const program& p);

// Makes the signature section of a file that will hold `sections`.
packed_section sign_native(const std::vector<packed_section>& sections, const signing_key& key);

// The key that signed the code of this program; nullopt without a signature. Throws error{corrupted} for a
// signature that is not right. Sections are verified against the rows that it covers when they are read.
std::optional<public_key> native_signer(open_container& file);

// Throws error{untrusted} if the program needs consent and `consent` does not trust who signed, and error{corrupted}
// for a signature that is not right. `p` is the program or the steps of the file.
void require_consent(const program& p, open_container& file, const native_consent& consent);

}  // namespace kiln::container
