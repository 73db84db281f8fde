// Converts the program section (modules, symbols and metadata) to FlatBuffers (program.fbs) and back.
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

// Returns tensor number `tensor` as a literal of this type. Throws error{corrupted} if there is no such tensor.
using tensor_source = std::function<literal(std::uint32_t tensor, shape type)>;

// Decodes a program without its kernels. Throws error{corrupted} for an invalid program, error{unsupported} for an
// operation that this Kiln does not know. `section` must be 16-byte aligned.
program decode_program(std::span<const std::byte> section, const tensor_source& tensors);

}  // namespace kiln::container
