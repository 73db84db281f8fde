// Kernels that compute each row independently. A row is one index of the leading axes whose dims are open: an image of
// a batch, a token of a batch of sentences. To serve any number of rows, such a kernel is compiled for a few rows and
// run for one block of rows after another (ir/row_kernel.hpp). So no compilation is needed for a number of rows that
// was not seen before.
//
// Kernel formation determines which kernels these are and records it in the program's metadata. Only kernel formation
// sees the operations of a kernel without parsing MLIR. Readers that do not support the entries ignore them.
#pragma once

#include <optional>
#include <string>

#include "ir/program.hpp"

namespace kiln {

// Returns the number of rows of a kernel as a product of different symbols ("batch", "batch*seq"), as many as possible.
// Returns nullopt if the leading dims of the outputs are static, or if a row depends on another one.
//
// Every tensor whose dims contain these symbols consists of `rows` equal parts that follow one another in memory, and
// part i of the outputs depends on part i of these inputs and on the other inputs only. All outputs have rows. Other
// symbols may occur in the dims of a row (an image of open height): such a kernel serves any number of rows of one
// size.
std::optional<dim> independent_rows(const module& kernel);

// Records the rows in the metadata under the hex hash of the kernel's payload.
void record_rows(program& p, const std::string& payload, const dim& rows);
std::optional<dim> recorded_rows(const program& p, const std::string& payload);

// Returns bindings that make a block of `count` rows: one symbol of `rows` is `count`, the other symbols of `rows` are
// 1, and all other symbols keep their sizes.
dim_bindings block_of_rows(const dim& rows, std::int64_t count, dim_bindings sizes = {});

// Returns true if a dim of the tensor depends on a symbol of `rows`.
bool has_rows(const shape& s, const dim& rows);

}  // namespace kiln
