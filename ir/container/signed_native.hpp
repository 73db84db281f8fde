// The section `signature`: one signature block (ir/trust/keys.hpp) for the native code objects of a file. The signature
// covers the line "Kiln native program 1", followed by the table rows (without file offsets) of the sections manifest,
// program, kernels and weights_index. So an attacker can neither change the launches, tensors or graph of a signed
// kernel nor move it into another file. Extras are not covered, because embedded objects have their own signatures.
#pragma once

#include "ir/container/sections.hpp"
#include "ir/trust/keys.hpp"

namespace kiln::container {

bool holds_native(const program& p);

// Makes the signature section of a file that will hold `sections`.
packed_section sign_native(const std::vector<packed_section>& sections, const signing_key& key);

// The key that signed the native code of this program; nullopt without a signature. Throws error{corrupted} for a
// signature that is not right. The sections were read before.
std::optional<public_key> native_signer(open_container& file);

// Throws error{untrusted} unless `consent` trusts who signed, and error{corrupted} for a signature that is not right.
void require_consent(open_container& file, const native_consent& consent);

}  // namespace kiln::container
