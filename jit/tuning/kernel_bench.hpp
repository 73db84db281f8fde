// One kernel on a device by itself, in several native forms, over shared input and output buffers: what timing and
// checking candidates is done with. A form is loaded as a program of one instruction, so that packed weights, scratch
// memory and tensor maps are what they are in a model, and packing constants is not timed.
//
// Used by one thread at a time. Errors of loading, launching and the device are thrown as kiln::error.
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
  double sample_ms = 0.3;         // a sample is as many runs as take about that long
  int most_runs = 200;            // of one sample
  bool cold_cache = false;        // before each run, memory larger than the device's caches is written
  device_turns* turns = nullptr;  // asked for a turn before the device is used; none: the device is ours alone
};

class kernel_bench {
 public:
  // Inputs are made once.
  kernel_bench(const kernel_group& group, std::vector<kernel_input> inputs, std::shared_ptr<device> target,
               const std::string& target_name, const bench_options& options = {});
  ~kernel_bench();

  // Loads a form; the number by which it is known.
  std::size_t add(const native_bytes& native);
  void drop(std::size_t form);  // frees its memory
  // Runs it once, with outputs that hold `fill` in every byte before; what it wrote.
  std::vector<literal> outputs(std::size_t form, std::byte fill);
  // Milliseconds of one run. GPU: by events around launches that are queued without waiting. `runs` 0: as the options
  // say.
  double sample(std::size_t form, int runs = 0);
  // Memory that a form needs beside the shared tensors, about.
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
  std::optional<executable> first_;  // its plan describes the tensors
  std::optional<io_buffers> tensors_;
  device_memory flush_;
  std::unique_ptr<device_event> begin_, end_;
};

}  // namespace kiln
