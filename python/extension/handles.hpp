// Owners of the C interface's handles.
#pragma once

#include <memory>

#include "runtime/kiln.h"

namespace kiln::python {

template <auto close>
struct closer {
  template <class T>
  void operator()(T* handle) const {
    close(handle);
  }
};

using program_handle = std::unique_ptr<kiln_program, closer<kiln_program_close>>;
using context_handle = std::unique_ptr<kiln_context, closer<kiln_context_destroy>>;
using description_handle = std::unique_ptr<kiln_description, closer<kiln_description_close>>;

}  // namespace kiln::python
