#include "python/extension/callbacks.hpp"

namespace nb = nanobind;

namespace kiln::python {

void callbacks::install(kiln_open_options& options) {
  options.data = this;
  if (!progress_.is_none())
    options.progress = [](void* data, std::size_t done, std::size_t total) {
      nb::gil_scoped_acquire locked;
      auto& self = *static_cast<callbacks*>(data);
      try {
        self.progress_(done, total);
      } catch (nb::python_error& e) {
        // The call that waits for the compiler raises the first one when it returns.
        if (!self.raised_.is_valid()) self.raised_ = nb::borrow(e.value());
      }
    };
  if (!warn_.is_none())
    options.warn = [](void* data, const char* text) {
      nb::gil_scoped_acquire locked;
      try {
        static_cast<callbacks*>(data)->warn_(text);
      } catch (nb::python_error& e) {
        e.discard_as_unraisable("kiln: the function for warnings");
      }
    };
}

void callbacks::rethrow() {
  if (!raised_.is_valid()) return;
  nb::object raised = std::move(raised_);
  raised_ = {};
  PyErr_SetObject(raised.type().ptr(), raised.ptr());
  throw nb::python_error();
}

int callbacks::traverse(visitproc visit, void* arg) const {
  Py_VISIT(progress_.ptr());
  Py_VISIT(warn_.ptr());
  return 0;
}

void callbacks::clear() { progress_ = warn_ = nb::none(); }

}  // namespace kiln::python
