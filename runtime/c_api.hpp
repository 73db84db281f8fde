// The C handles as C++ objects, for the C interface and for those who have a program in memory.
#pragma once

#include <memory>

#include "runtime/executable.hpp"
#include "runtime/host_device.hpp"
#include "runtime/kiln.h"

// Owns its device; the device lives longer than what was loaded onto it.
struct kiln_program {
  kiln_program(const kiln::program& source, unsigned threads);
  kiln::host_device device;
  kiln::executable loaded;
};

struct kiln_context {
  explicit kiln_context(const kiln_program& program);
  const kiln_program& program;
  kiln::execution_context context;
  std::vector<kiln::executable::input_span> inputs;    // filled by every run
  std::vector<kiln::executable::output_span> outputs;
};
