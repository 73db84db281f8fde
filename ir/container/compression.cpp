#include "ir/container/compression.hpp"

#include <zstd.h>

#include <algorithm>
#include <memory>

namespace kiln::container {
namespace {

// Up to this size, the buffer is allocated at once. Beyond it, it grows with the output.
constexpr std::uint64_t first_piece = std::uint64_t{16} << 20;

}  // namespace

std::optional<std::vector<std::byte>> decompress_frame(std::span<const std::byte> stored, std::uint64_t raw_bytes) {
  if (ZSTD_findFrameCompressedSize(stored.data(), stored.size()) != stored.size() ||
      ZSTD_getFrameContentSize(stored.data(), stored.size()) != raw_bytes)
    return std::nullopt;
  std::vector<std::byte> raw(std::min(raw_bytes, first_piece));
  if (raw.size() == raw_bytes) {
    if (ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size()) != raw_bytes) return std::nullopt;
    return raw;
  }
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  for (std::size_t done = 0;;) {
    ZSTD_outBuffer out{raw.data(), raw.size(), done};
    const std::size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left)) return std::nullopt;
    done = out.pos;
    if (left == 0) {  // end of the frame
      if (done != raw_bytes) return std::nullopt;
      return raw;
    }
    if (done < raw.size()) return std::nullopt;        // the input ended early
    if (raw.size() == raw_bytes) return std::nullopt;  // the frame holds more than raw_bytes
    raw.resize(std::min<std::uint64_t>(raw_bytes, 2 * raw.size()));
  }
}

}  // namespace kiln::container
