// The kernels of a model that serve any number of rows (ir/independent_rows.hpp), finalized for a device. Each is
// compiled once for a few block sizes. A kernel with open dims inside a row (for example sentences of open length) is
// compiled once for each size of these dims. Used by one thread at a time.
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
  // `portable` is a program with open dims and must outlive this object.
  explicit row_kernels(const program& portable);

  // Returns the payloads of kernels whose rows have no open dims. They are compiled once for all sizes.
  std::set<std::string> of_static_rows() const;
  // Drops the kernels for which `has_better` returns true, except those of of_static_rows().
  void leave_out(const std::function<bool(const std::string& payload)>& has_better);

  // Compiles the blocks that are missing for these sizes as compile_bytecode does, and throws what it throws. The
  // report is empty if none were missing.
  jit_report finalize(const dim_bindings& sizes, const jit_options& options);
  // Replaces the code objects of `in` for which there is such a kernel. Others stay portable. The kernels must be
  // finalized. `sizes`: those that `in` is bound to; null if its dims are open, where only kernels without open dims
  // inside a row can be used.
  void use_in(program& in, const dim_bindings* sizes) const;

 private:
  struct open_kernel {
    // The first instruction that uses it. Equal payloads have equal symbolic shapes.
    const instruction* first = nullptr;
    const code_object* object = nullptr;
    dim rows;
    // Symbols in the dims of a row.
    std::vector<std::string> inside;
  };
  struct native_payload {
    content_hash hash;
    // A serialized row_kernel.
    std::shared_ptr<const std::vector<std::byte>> bytes;
    std::size_t last_use = 0;
  };
  // Payload, and sizes of the dims inside a row.
  using key = std::pair<std::string, dim_bindings>;
  struct wanted_kernel;
  static key key_of(const open_kernel& kernel, const dim_bindings& sizes);
  void forget_oldest();
  void add(const program& native, std::vector<wanted_kernel> wanted, const std::string& target);

  const program& portable_;
  // Keyed by payload.
  std::map<std::string, open_kernel> open_;
  std::map<key, native_payload> made_;
  std::string target_;
  // Number of calls of finalize().
  std::size_t uses_ = 0;
};

}  // namespace kiln
