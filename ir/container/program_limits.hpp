// The limits that reader and writer of a program share: what the reader calls corrupted is what the writer refuses to
// write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/program.hpp"

namespace kiln::container {

inline constexpr std::size_t max_rank = 64;
inline constexpr std::size_t max_dim_text = 4096;  // of a symbolic dimension, in characters
inline constexpr std::size_t max_body_depth = 64;  // of modules that enter each other
inline constexpr std::uint64_t max_tensor_bytes = std::uint64_t{1} << 46;

// Throws error{corrupted} for what no tensor of a file is.
void check_shape(const shape& type);

// Throws error{unsupported}, naming the node, where the reader would refuse the program.
void check_writable(const program& p);

}  // namespace kiln::container
