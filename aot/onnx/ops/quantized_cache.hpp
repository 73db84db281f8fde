// Caches of keys and values whose elements GroupQueryAttention quantizes: i8, f8, or pairs of 4-bit numbers in bytes.
#pragma once

#include <optional>
#include <string_view>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

struct cache_format {
  element_type type;    // of the elements, or of the bytes that hold two 4-bit numbers
  bool packed = false;  // two 4-bit numbers in each byte, the even column in the low half; they are stored plus 8
  value scale;          // f32, [] or [1, G, 1, H]
};

// Returns how the cache of input `cache` is quantized, or nullopt if it is not. `kind` is the attribute that says what
// one scale is for (NONE, PER_TENSOR, PER_CHANNEL), `scale` the index of the scales. The cache has `heads` heads.
std::optional<cache_format> cache_format_of(node& n, std::size_t cache, std::size_t scale, std::string_view kind,
                                            std::int64_t heads);

// Quantizes rows [B, G, S, H]: round(x / scale), saturated. Packed results are [B, G, S, H / 2].
value stored(builder& b, value rows, const cache_format& format);

// Returns the numbers that stored() has quantized, in the floating type `type`.
value loaded(builder& b, value cache, const cache_format& format, element_type type);

}  // namespace kiln::onnx_import
