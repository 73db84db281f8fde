#include "python/extension/status.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace kiln::python {

void raise(kiln_status status, const std::string& message) {
  nb::object error = nb::module_::import_("kiln.errors").attr("of_status")(kiln_status_name(status), message);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace kiln::python
