// Signatures of cache entries: a signed entry is followed by a signature block (ir/trust/keys.hpp).
//
// Signed are the 19 bytes "Kiln cache entry 1\n" and the entry's header (entry.hpp), whose hashes cover everything
// behind it: the key, so that an entry cannot be moved under another one, and the kernel with its launches. A signature
// says who vouches for an entry; the hashes alone find damage, not malice.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/trust/keys.hpp"

namespace kiln {

// Who signed the entry, none where it ends with its payload. Throws error{truncated} where it ends before that, and
// error{corrupted} where the bytes behind the payload are no right signature. `payload_end` as in
// entry_head::file_bytes().
std::optional<public_key> signer_of(std::span<const std::byte> entry, std::uint64_t payload_end);

// Throws as signer_of does, but does not compute whether the signature is right: for entries whose place vouches for
// them.
void check_signature_shape(std::span<const std::byte> entry, std::uint64_t payload_end);

// The entry with this signature in place of any it had.
std::vector<std::byte> signed_entry(std::span<const std::byte> entry, const signing_key& key);

}  // namespace kiln
