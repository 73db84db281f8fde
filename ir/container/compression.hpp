// Decompression of zstd frames from untrusted files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kiln::container {

// Decompresses `stored`, which must be exactly one zstd frame. Returns nullopt unless the frame is valid and both its
// header and its content have a size of exactly `raw_bytes`. The buffer grows with the decompressed data, so a false
// size in the header cannot cause a huge allocation.
std::optional<std::vector<std::byte>> decompress_frame(std::span<const std::byte> stored, std::uint64_t raw_bytes);

}  // namespace kiln::container
