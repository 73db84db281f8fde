// The program section: modules, symbols and metadata to FlatBuffers (program.fbs) and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/container/weights.hpp"
#include "ir/program.hpp"

namespace kiln::container {

std::vector<std::byte> encode_program(const program& p, const weight_collection& weights);

// The tensor of that number with that type; throws error{corrupted} where it has none.
using tensor_source = std::function<literal(std::uint32_t tensor, shape type)>;

// The program without its kernels. Throws error{corrupted} for whatever is not a valid program, error{unsupported} for
// an operation that this Kiln does not know. `section` must be 16-byte aligned.
program decode_program(std::span<const std::byte> section, const tensor_source& tensors);

}  // namespace kiln::container
