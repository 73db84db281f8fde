#include "onnxruntime/kiln_library.hpp"

#include <dlfcn.h>

#include <string>

#include "onnxruntime/own_folder.hpp"

namespace kiln::ort {
namespace {

void* open_library() {
  for (const std::string& place : {own_folder() + "/libkiln_runtime.so.0",
                                   own_folder() + "/../lib/libkiln_runtime.so.0", std::string("libkiln_runtime.so.0")})
    if (void* found = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
  throw std::runtime_error(std::string("kiln: libkiln_runtime.so.0 is neither beside the plug-in nor installed: ") +
                           ::dlerror());
}

template <class Function>
void find(void* in, const char* name, Function& to) {
  void* found = ::dlsym(in, name);
  if (!found) throw std::runtime_error(std::string("kiln: libkiln_runtime.so.0 is older than the plug-in: no ") + name);
  to = reinterpret_cast<Function>(found);
}

kiln_library loaded() {
  void* in = open_library();
  kiln_library l{};
  find(in, "kiln_last_error", l.last_error);
  find(in, "kiln_session_open", l.session_open);
  find(in, "kiln_session_close", l.session_close);
  find(in, "kiln_session_program_for", l.session_program_for);
  find(in, "kiln_program_close", l.program_close);
  find(in, "kiln_program_input_count", l.program_input_count);
  find(in, "kiln_program_output_count", l.program_output_count);
  find(in, "kiln_program_input", l.program_input);
  find(in, "kiln_program_output", l.program_output);
  find(in, "kiln_program_output_extent", l.program_output_extent);
  find(in, "kiln_context_create_with", l.context_create_with);
  find(in, "kiln_context_destroy", l.context_destroy);
  find(in, "kiln_run", l.run);
  find(in, "kiln_run_from_host", l.run_from_host);
  find(in, "kiln_run_on_stream", l.run_on_stream);
  find(in, "kiln_device_count", l.device_count);
  find(in, "kiln_device_open", l.device_open);
  find(in, "kiln_device_close", l.device_close);
  find(in, "kiln_device_allocate", l.device_allocate);
  find(in, "kiln_device_free", l.device_free);
  find(in, "kiln_device_upload", l.device_upload);
  find(in, "kiln_device_download", l.device_download);
  find(in, "kiln_device_copy", l.device_copy);
  find(in, "kiln_description_open", l.description_open);
  find(in, "kiln_description_close", l.description_close);
  find(in, "kiln_description_input_count", l.description_input_count);
  find(in, "kiln_description_input", l.description_input);
  find(in, "kiln_description_output", l.description_output);
  return l;
}

}  // namespace

const kiln_library& library() {
  static const kiln_library all = loaded();
  return all;
}

}  // namespace kiln::ort
