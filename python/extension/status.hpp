// Statuses of the C interface as Python exceptions.
#pragma once

#include <string>

#include "runtime/kiln.h"

namespace kiln::python {

// Throws the exception of kiln/errors.py for this status, with this message. The caller holds the interpreter's lock.
[[noreturn]] void raise(kiln_status status, const std::string& message);

// The outcome of a call that ran without the interpreter's lock: kiln_last_error() belongs to the thread, so it is read
// at once.
struct outcome {
  outcome(kiln_status of) : status(of), message(of == KILN_OK ? "" : kiln_last_error()) {}
  kiln_status status;
  std::string message;
};

inline void check(const outcome& o) {
  if (o.status != KILN_OK) raise(o.status, o.message);
}

}  // namespace kiln::python
