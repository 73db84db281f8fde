// The program section: modules, symbols and metadata to FlatBuffers (program.fbs) and back.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ir/container/weights.hpp"
#include "ir/program.hpp"

namespace kiln::container {

std::vector<std::byte> encode_program(const program& p, const weight_collection& weights);

// The program without its kernels. Throws error{corrupted} for whatever is not a valid program, error{unsupported} for an
// operation that this Kiln does not know. `section` must be 16-byte aligned.
program decode_program(std::span<const std::byte> section, weight_source& weights);

}  // namespace kiln::container
