// Sequences as bytes, to go on with them later: after a restart, or on another device. The bytes are data from outside:
// they have a hash, and every size is checked before memory is allocated for it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "generation/sequence_batch.hpp"
#include "ir/hash.hpp"

namespace kiln {

// `model` identifies the model that has read the sequences. Copies the used rows of caches from the device, and waits.
std::vector<std::byte> write_sequences(device& on, const sequence_batch& batch, const content_hash& model);

// Throws error{truncated} or error{corrupted} for damaged bytes, error{newer_version}, and error{mismatch} if another
// model has read the sequences. Whether the tensors fit the model is for the caller to check.
sequence_batch read_sequences(device& on, std::span<const std::byte> bytes, const content_hash& model);

}  // namespace kiln
