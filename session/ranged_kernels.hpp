// The kernels of a model that serve many sizes: those for any number of rows (row_kernels.hpp), and those for all sizes
// (open_kernels.hpp). A kernel whose rows have static dims is one for any number of rows, because its inner loops know
// their lengths; any other kernel that has a form for all sizes is one of these. GPUs have only the latter, because one
// launch cannot do many blocks there. Used by one thread at a time.
#pragma once

#include "session/open_kernels.hpp"
#include "session/row_kernels.hpp"

namespace kiln {

class ranged_kernels {
 public:
  // `portable` is a program with open dims and must outlive this object.
  ranged_kernels(const program& portable, processor on);

  processor on() const { return on_; }

  // Compiles the kernels that are missing for these sizes. Throws what compile_bytecode throws. `warn` is called for
  // each kernel that the compiler refuses.
  jit_report finalize(const dim_bindings& sizes, const jit_options& options,
                      const std::function<void(const std::string&)>& warn);
  // In `bound`, which is the program bound to `sizes`, replaces the code objects for which there is such a kernel.
  // Others stay portable.
  void use_in(program& bound, const dim_bindings& sizes) const;
  // The same in a program whose dims are open, with the kernels that serve all sizes.
  void use_in(program& open) const;

 private:
  processor on_;
  row_kernels rows_;
  open_kernels open_;
};

}  // namespace kiln
