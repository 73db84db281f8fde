// Python functions that Kiln's threads call. They live longer than the session that calls them.
#pragma once

#include <nanobind/nanobind.h>

#include "runtime/kiln.h"

namespace kiln::python {

class callbacks {
 public:
  // Each may be None.
  callbacks(nanobind::object progress, nanobind::object warn)
      : progress_(std::move(progress)), warn_(std::move(warn)) {}
  callbacks(const callbacks&) = delete;

  void install(kiln_open_options& options);
  // Throws what `progress` has raised since the last call. The caller holds the interpreter's lock.
  void rethrow();
  // For the garbage collector: the functions may refer to the session that holds them. clear() is for a session that is
  // closed.
  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  nanobind::object progress_, warn_, raised_;
};

}  // namespace kiln::python
