// Limits shared by the reader and the writer of a program: the writer refuses to write what the reader would reject as
// corrupted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/program.hpp"

namespace kiln::container {

inline constexpr std::size_t max_rank = 64;
inline constexpr std::size_t max_dim_text = 4096;  // length of a symbolic dimension's text, in characters
inline constexpr std::size_t max_body_depth = 64;  // nesting of modules
inline constexpr std::uint64_t max_tensor_bytes = std::uint64_t{1} << 46;

// Throws error{corrupted} for a shape that no tensor in a file can have.
void check_shape(const shape& type);

// Throws error{unsupported}, naming the node, if the reader would reject the program.
void check_writable(const program& p);

}  // namespace kiln::container
