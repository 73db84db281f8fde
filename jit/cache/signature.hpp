// Signatures of cache entries: a signed entry is followed by a signature block (ir/trust/keys.hpp).
//
// The signed message is the 19 bytes "Kiln cache entry 1\n" followed by the entry's header (entry.hpp). The hashes in
// the header cover everything after it: the key, so an entry cannot be moved to another key, and the kernel with its
// launches. The signature says who vouches for an entry. The hashes alone detect corruption, but not tampering.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/trust/keys.hpp"

namespace kiln {

// Returns the signer of the entry, or nothing if it is unsigned (ends with its payload). `payload_end` is
// entry_head::file_bytes(). Throws error{truncated} if the entry ends before that, and error{corrupted} if the bytes
// after the payload are not a valid signature.
std::optional<public_key> signer_of(std::span<const std::byte> entry, std::uint64_t payload_end);

// Throws like signer_of, but checks only the format of the signature. For entries in folders that are trusted by their
// owner and mode.
void check_signature_shape(std::span<const std::byte> entry, std::uint64_t payload_end);

// Returns the entry signed with `key`. Any earlier signature is replaced.
std::vector<std::byte> signed_entry(std::span<const std::byte> entry, const signing_key& key);

}  // namespace kiln
