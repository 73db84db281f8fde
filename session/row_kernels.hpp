// The kernels of a model that serve any number of rows (ir/independent_rows.hpp), finalized for a device. Each is
// compiled once for a few block sizes; a kernel with open dims inside a row (sentences of open length) once for each
// size of these. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/program.hpp"
#include "jit/compile_bytecode.hpp"

namespace kiln {

class row_kernels {
 public:
  // `portable`, a program with open dims, must outlive this object.
  explicit row_kernels(const program& portable);

  // The payloads of kernels whose rows have no open dims: they are compiled once for all sizes.
  std::set<std::string> of_static_rows() const;
  // Forgets the kernels that `has_better` names. Those of of_static_rows() stay.
  void leave_out(const std::function<bool(const std::string& payload)>& has_better);

  // Compiles the blocks that are missing for these sizes, as compile_bytecode does, and throws what it throws. The
  // report is empty if there were none.
  jit_report finalize(const dim_bindings& sizes, const jit_options& options);
  // Replaces the code objects that have such a kernel in `bound`, which is the program bound to `sizes`. The others
  // stay portable. The kernels must be finalized.
  program use_in(const program& bound, const dim_bindings& sizes) const;

 private:
  struct open_kernel {
    const instruction* first = nullptr;  // that uses it; equal payloads have equal symbolic shapes
    const code_object* object = nullptr;
    dim rows;
    std::vector<std::string> inside;  // symbols in the dims of a row
  };
  struct native_payload {
    content_hash hash;
    std::shared_ptr<const std::vector<std::byte>> bytes;  // a row_kernel
    std::size_t last_use = 0;
  };
  using key = std::pair<std::string, dim_bindings>;  // payload, sizes of the dims inside a row
  struct wanted_kernel;
  static key key_of(const open_kernel& kernel, const dim_bindings& sizes);
  void forget_oldest();
  void add(const program& native, std::vector<wanted_kernel> wanted, const std::string& target);

  const program& portable_;
  std::map<std::string, open_kernel> open_;  // by payload
  std::map<key, native_payload> made_;
  std::string target_;
  std::size_t uses_ = 0;  // calls of finalize
};

// The block sizes of a kernel, in descending order, the last one 1. A block should be large enough that its launch does
// not cost more than its work. A kernel that serves all sizes is compiled once, so that it may have more of them.
struct row_traffic {
  std::int64_t row_bytes = 0;     // of one row in all tensors
  std::int64_t shared_bytes = 0;  // that every block reads: weights
  bool for_all_sizes = false;
};
std::vector<std::int64_t> block_sizes(const row_traffic& traffic);

}  // namespace kiln
