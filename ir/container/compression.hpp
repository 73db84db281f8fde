// zstd frames from outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kiln::container {

// What `stored`, which must be one whole zstd frame, holds, if that is exactly `raw_bytes`. The frame's own header has
// to say the same, and memory is taken for what comes out of it rather than for what the header claims.
std::optional<std::vector<std::byte>> decompress_frame(std::span<const std::byte> stored, std::uint64_t raw_bytes);

}  // namespace kiln::container
