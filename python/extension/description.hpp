// What a `.kiln` file says about its inputs, outputs and open dimensions.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "python/extension/handles.hpp"

namespace kiln::python {

struct described_tensor {
  std::string name;
  kiln_type type = KILN_F32;
  std::vector<std::string> dims;  // numbers, open dimensions, expressions of them
  bool decides_sizes = false;
};

struct described_dim {
  std::string name;
  std::int64_t min = 0, max = 0;
};

struct description {
  std::vector<described_tensor> inputs, outputs;
  std::vector<described_dim> dims;
  bool has_weights = true;
};

// Reads the file without the interpreter's lock. Throws Python exceptions.
description describe(const std::string& path);

// (inputs, outputs, dims, has_weights): lists of (name, type, dims) and of (name, min, max), and a bool.
nanobind::tuple as_tuple(const description& d);

}  // namespace kiln::python
