// Runs one kernel on a device in several native forms with the same input and output buffers, to time and check
// candidates. Each form is loaded as a program of one instruction, so packed weights, scratch memory and tensor maps
// are set up as in a model. Packing of constants is not timed.
//
// Used by one thread at a time. Throws kiln::error if loading or launching fails or the device reports an error.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "jit/kernel_compiler.hpp"
#include "jit/tuning/device_turns.hpp"
#include "jit/tuning/kernel_inputs.hpp"
#include "runtime/executable.hpp"
#include "runtime/io_buffers.hpp"

namespace kiln {

struct bench_options {
  double sample_ms = 0.3;   // a sample repeats the kernel for about this long
  int most_runs = 200;      // upper bound on the runs of one sample
  bool cold_cache = false;  // flush the caches before each run by writing a buffer larger than them
  // Asked for a turn before the device is used; null: nobody else uses the device.
  device_turns* turns = nullptr;
};

class kernel_bench {
 public:
  // `inputs` are uploaded once and shared by all forms.
  kernel_bench(const kernel_group& group, std::vector<kernel_input> inputs, std::shared_ptr<device> target,
               const std::string& target_name, const bench_options& options = {});
  ~kernel_bench();

  // Loads a form and returns its index.
  std::size_t add(const native_bytes& native);
  void drop(std::size_t form);  // frees its memory
  // Fills every byte of the outputs with `fill`, runs the form once and returns its outputs.
  std::vector<literal> outputs(std::size_t form, std::byte fill);
  // Milliseconds of one run, averaged over a sample. On GPUs the runs are queued without waiting and timed by events
  // around them. `runs` 0: as many runs as bench_options asks for.
  double sample(std::size_t form, int runs = 0);
  // Approximate memory of a form in bytes, without the shared tensors.
  std::size_t form_bytes(std::size_t form) const;

 private:
  struct form;
  double time_runs(form& f, int runs);
  std::shared_ptr<device> owner_;
  device& device_;
  code_object what_;
  std::vector<kernel_input> inputs_;
  bench_options options_;
  std::vector<std::unique_ptr<form>> forms_;
  std::optional<executable> first_;  // describes the shapes of tensors_
  std::optional<io_buffers> tensors_;
  device_memory flush_;
  std::unique_ptr<device_event> begin_, end_;
};

}  // namespace kiln
