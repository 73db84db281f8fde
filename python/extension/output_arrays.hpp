// The arrays that a run fills: the caller's, or new ones of the kind of the inputs (numpy, torch, cupy).
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "python/extension/description.hpp"
#include "python/extension/program_pool.hpp"
#include "python/extension/tensor_view.hpp"

namespace kiln::python {

class output_arrays {
 public:
  // `arrays` is the module kiln.arrays. `given` is None or a sequence with an array or None for each output.
  output_arrays(const sized_program& program, const std::vector<described_tensor>& declared, nanobind::handle arrays,
                nanobind::sequence inputs, nanobind::handle given, bool on_device);

  void* const* pointers() const { return pointers_.data(); }
  // The stream of the GPU on which the library of the inputs works, if it has one.
  std::optional<void*> stream() const { return stream_; }
  // The arrays after the run, cut to their valid elements; None for outputs that only count those.
  nanobind::list finish();

 private:
  void allocate(std::size_t index);
  void take(std::size_t index, nanobind::object array, bool on_device);

  const sized_program& program_;
  const std::vector<described_tensor>& declared_;
  nanobind::handle arrays_;
  nanobind::object empty_;  // allocates, given a shape and a type's name; none: numpy does
  std::optional<void*> stream_;
  std::vector<nanobind::object> made_;
  std::vector<bool> ours_;  // made here, not by the caller
  std::vector<tensor_view> views_;
  std::vector<void*> pointers_;
};

}  // namespace kiln::python
