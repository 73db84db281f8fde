// The kernels of a model that serve any number of rows (ir/independent_rows.hpp), finalized for a device once. Each is
// compiled for a few block sizes; the shapes of the blocks do not depend on the sizes that the model is run with.
// Immutable after construction.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "jit/compile_bytecode.hpp"

namespace kiln {

class row_kernels {
 public:
  // Compiles the blocks that the cache does not have, as compile_bytecode does, and throws what it throws. `portable`
  // is a program with open dims.
  row_kernels(const program& portable, const jit_options& options);

  // Of compiling the blocks.
  const jit_report& report() const { return report_; }
  std::size_t size() const { return made_.size(); }
  // Replaces the code objects of a bound program that have such a kernel. The others stay portable.
  program use_in(const program& bound) const;

 private:
  struct native_payload {
    content_hash hash;
    std::shared_ptr<const std::vector<std::byte>> bytes;  // a row_kernel
  };
  std::string target_;
  std::map<std::string, native_payload> made_;  // by the portable payload
  jit_report report_;
};

// The block sizes of a kernel, in descending order, the last one 1. A block should be large enough that its launch does
// not cost more than its work. `bytes` are those of one row in all tensors.
std::vector<std::int64_t> block_sizes(std::int64_t bytes);

}  // namespace kiln
