// One of our kernels, compiled and loaded into this process, with aligned buffers for its arguments.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ir/module.hpp"
#include "ir/native_kernel.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::bench {

class our_kernel {
 public:
  // Throws what finalize throws.
  our_kernel(const module& fusion, const target_row& target, const kernel_configuration& configuration,
             bool want_texts = false);
  ~our_kernel();
  const finalize_trace& trace() const { return trace_; }
  double compile_ms() const { return compile_ms_; }
  std::size_t code_bytes() const;
  // Launches of a run, without those that prepare weights.
  std::size_t launches() const;
  void set_arguments(std::vector<const void*> inputs, std::vector<void*> outputs);
  void prepare();  // packs the weights
  // All launches of a run of a model, on this thread.
  void run();

 private:
  void launch_all(bool prepare);
  struct implementation;
  std::unique_ptr<implementation> impl_;
  finalize_trace trace_;
  double compile_ms_ = 0;
};

}  // namespace kiln::bench
