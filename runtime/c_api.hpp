// The C handles as C++ objects, for the C interface and for those who have a program in memory.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/device.hpp"
#include "runtime/executable.hpp"
#include "runtime/kiln.h"

// Owns its device; the device lives longer than what was loaded onto it.
struct kiln_program {
  kiln_program(const kiln::program& source, std::unique_ptr<kiln::device> on);
  std::unique_ptr<kiln::device> device;
  kiln::executable loaded;
};

struct kiln_context {
  kiln_context(const kiln_program& program, const kiln::graph_options& graph);
  const kiln_program& program;
  std::map<void*, std::unique_ptr<kiln::device_stream>> streams;  // of the caller's, by what they call them
  kiln::execution_context context;
  kiln::graph_report graph;                          // as last asked for
  std::vector<kiln::executable::input_span> inputs;  // filled by every run
  std::vector<kiln::executable::output_span> outputs;
};
