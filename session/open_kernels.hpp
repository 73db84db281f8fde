// The kernels of a model that are compiled once for all sizes (open kernels, ir/native_kernel.hpp), finalized for a
// device. Used by one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/native_kernel.hpp"
#include "ir/open_form.hpp"
#include "ir/program.hpp"
#include "jit/compile_bytecode.hpp"

namespace kiln {

class open_kernels {
 public:
  // Selects the kernels of `portable` that can be compiled as open kernels for these processors, except the payloads in
  // `without`. `portable` is a program with open dims and must outlive this object.
  open_kernels(const program& portable, processor on, const std::set<std::string>& without);

  // Returns true if a kernel with this payload was selected.
  bool contains(const std::string& payload) const { return kernels_.contains(payload); }

  // The first call compiles all selected kernels as compile_bytecode does; later calls return an empty report. If the
  // compiler refuses a kernel, `warn` is called and the kernel is specialized for each set of sizes instead.
  jit_report finalize(const jit_options& options, const std::function<void(const std::string&)>& warn);
  // Replaces the code objects of `in` for which there is an open kernel. Others stay portable. If `in` is bound to
  // `sizes`, so do those with an empty input, which an open kernel may not read, and those with more elements than the
  // kernel's offsets can address (serves() in ir/native_kernel.hpp). `sizes` is null if its dims are open.
  void use_in(program& in, const dim_bindings* sizes) const;

 private:
  struct open_kernel {
    // The first instruction that uses it.
    const instruction* first = nullptr;
    const code_object* object = nullptr;
    content_hash hash{};
    // The native kernel; null before finalize().
    std::shared_ptr<const std::vector<std::byte>> bytes;
    native_kernel native;  // without its object
  };
  jit_report compile(const std::vector<open_kernel*>& wanted, const jit_options& options);
  static bool has_shapes_of(const open_kernel& kernel, const instruction& i, const dim_bindings& sizes);
  const open_kernel* find(const instruction& i, const dim_bindings& sizes) const;

  const program& portable_;
  // Keyed by payload. A fusion contains its symbolic shapes, so it has one kernel. A HIP kernel, and a fusion with
  // sizes that are computed in floats, has one for each set of symbolic shapes.
  std::multimap<std::string, open_kernel> kernels_;
  bool finalized_ = false;
  std::string target_;
};

}  // namespace kiln
