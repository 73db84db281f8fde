// The C handles as C++ objects.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "runtime/device.hpp"
#include "runtime/executable.hpp"
#include "runtime/io_buffers.hpp"
#include "runtime/kiln.h"
#include "runtime/model_interface.hpp"
#include "runtime/model_source.hpp"

struct kiln_session {
  std::shared_ptr<kiln::model_source> source;
  kiln::model_interface described;
};

// The source lives longer than what was loaded from it.
struct kiln_program {
  std::shared_ptr<kiln::model_source> source;
  std::shared_ptr<const kiln::loaded_model> model;
  const kiln::executable& loaded() const { return model->executable(); }
};

struct kiln_context {
  kiln_context(const kiln_program& of, kiln::graph_policy graph);
  kiln_program program;
  std::map<void*, std::unique_ptr<kiln::device_stream>> streams;  // of the caller's, by what they call them
  std::unique_ptr<kiln::model_runner> runner;
  kiln::graph_report graph;                          // as last asked for
  std::vector<kiln::executable::input_span> inputs;  // filled by every run
  std::vector<kiln::executable::output_span> outputs;
  std::optional<kiln::io_buffers> tensors;  // on the device; made by the first kiln_run_from_host
};
