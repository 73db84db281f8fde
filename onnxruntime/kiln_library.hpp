// Kiln's C interface, opened when the plug-in is used, so that none of its symbols meet those of other libraries of the
// process.
#pragma once

#include <string>

#include "onnxruntime/api.hpp"
#include "runtime/kiln.h"

namespace kiln::ort {

struct kiln_library {
  decltype(&::kiln_last_error) last_error;
  decltype(&::kiln_session_open) session_open;
  decltype(&::kiln_session_close) session_close;
  decltype(&::kiln_session_program_for) session_program_for;
  decltype(&::kiln_program_close) program_close;
  decltype(&::kiln_program_input_count) program_input_count;
  decltype(&::kiln_program_output_count) program_output_count;
  decltype(&::kiln_program_input) program_input;
  decltype(&::kiln_program_output) program_output;
  decltype(&::kiln_program_output_extent) program_output_extent;
  decltype(&::kiln_context_create_with) context_create_with;
  decltype(&::kiln_context_destroy) context_destroy;
  decltype(&::kiln_run) run;
  decltype(&::kiln_run_from_host) run_from_host;
  decltype(&::kiln_run_on_stream) run_on_stream;
  decltype(&::kiln_device_count) device_count;
  decltype(&::kiln_device_open) device_open;
  decltype(&::kiln_device_close) device_close;
  decltype(&::kiln_device_allocate) device_allocate;
  decltype(&::kiln_device_free) device_free;
  decltype(&::kiln_device_upload) device_upload;
  decltype(&::kiln_device_download) device_download;
  decltype(&::kiln_device_copy) device_copy;
  decltype(&::kiln_description_open) description_open;
  decltype(&::kiln_description_close) description_close;
  decltype(&::kiln_description_input_count) description_input_count;
  decltype(&::kiln_description_input) description_input;
  decltype(&::kiln_description_output) description_output;
};

// Looks beside the plug-in, then where the loader looks. Throws std::runtime_error. The library stays open.
const kiln_library& library();

// After a failure with ORT_EP_FAIL the Python interface goes on without the provider, so it is not used: whoever asked
// for Kiln should hear what is wrong.
inline void check(kiln_status status) {
  if (status == KILN_OK) return;
  const bool callers = status == KILN_INVALID_SHAPE || status == KILN_USAGE;
  throw failure(callers ? ORT_INVALID_ARGUMENT : ORT_FAIL, std::string("kiln: ") + library().last_error());
}

}  // namespace kiln::ort
