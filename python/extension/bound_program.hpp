// A program of a session for a caller that knows its tensors: their types, sizes, alignment and place are those of the
// program, and there are no gaps. A run takes addresses and checks none of this, so it costs the calling thread little.
// Needs the interpreter's lock, which run() releases while Kiln works.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "python/extension/callbacks.hpp"
#include "python/extension/program_pool.hpp"

namespace kiln::python {

class bound_program {
 public:
  // `functions` are those of the session, and must outlive this object.
  bound_program(std::weak_ptr<kiln_session> of, callbacks& functions, std::shared_ptr<sized_program> program)
      : session_(std::move(of)), functions_(functions), program_(std::move(program)) {}

  // A list of (shape, name of the type as numpy's arrays have it).
  nanobind::list outputs() const;
  // `inputs` and `outputs` are addresses, in the order of the model. `stream` is the address of a stream of the GPU, on
  // which the run is enqueued, or None: then the run has ended when this returns.
  void run(nanobind::list inputs, nanobind::list outputs, nanobind::object stream);

 private:
  std::weak_ptr<kiln_session> session_;  // expired once it is closed
  callbacks& functions_;
  std::shared_ptr<sized_program> program_;
};

}  // namespace kiln::python
