// The extension module kiln._core. It binds the C interface and has no compiler in it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/extension/bound_program.hpp"
#include "python/extension/decoder.hpp"
#include "python/extension/session.hpp"
#include "python/extension/status.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using kiln::python::bound_program;
using kiln::python::session;
using kiln::python::session_choice;

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<session>(self)->functions().traverse(visit, arg) : 0;
}

int clear(PyObject* self) {
  session* s = nb::inst_ptr<session>(self);
  s->close();
  s->functions().clear();
  return 0;
}

PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {Py_tp_clear, reinterpret_cast<void*>(&clear)}, {0, nullptr}};

}  // namespace

NB_MODULE(_core, m) {
  if (kiln_api_version() < KILN_API_VERSION)
    throw nb::import_error("kiln: libkiln_runtime.so.0 is older than this package; install both from one build");
  m.def("api_version", &kiln_api_version);
  m.def("describe", [](const std::string& path) { return as_tuple(kiln::python::describe(path)); }, "path"_a);
  m.def(
      "load_compiler",
      [](const std::string& library) {
        kiln::python::check(kiln_load_compiler(library.empty() ? nullptr : library.c_str()));
      },
      "library"_a = "");
  nb::class_<bound_program>(m, "BoundProgram")
      .def("outputs", &bound_program::outputs)
      .def("run", &bound_program::run, "inputs"_a, "outputs"_a, "stream"_a.none());
  nb::class_<session>(m, "Session", nb::is_weak_referenceable(), nb::type_slots(slots))
      .def(
          "__init__",
          [](session* self, std::string path, std::string device, unsigned threads,
             std::vector<std::pair<std::string, std::int64_t>> dims, int tuning, double tuning_seconds,
             int specialization, std::string cache, std::string trusted_keys, bool no_cache, bool only_cached,
             bool allow_unsigned, std::size_t most_programs, nb::object progress, nb::object warn) {
            new (self) session({.path = std::move(path),
                                .device = std::move(device),
                                .threads = threads,
                                .dims = std::move(dims),
                                .tuning = tuning,
                                .tuning_seconds = tuning_seconds,
                                .specialization = specialization,
                                .cache_folder = std::move(cache),
                                .trusted_keys = std::move(trusted_keys),
                                .no_cache = no_cache,
                                .only_cached = only_cached,
                                .allow_unsigned = allow_unsigned,
                                .most_programs = most_programs},
                               std::move(progress), std::move(warn));
          },
          "path"_a, nb::kw_only(), "device"_a, "threads"_a, "dims"_a, "tuning"_a, "tuning_seconds"_a,
          "specialization"_a, "cache"_a, "trusted_keys"_a, "no_cache"_a, "only_cached"_a, "allow_unsigned"_a,
          "most_programs"_a, "progress"_a.none(), "warn"_a.none())
      .def("run", &session::run, "inputs"_a, "outputs"_a.none(), "stream"_a.none())
      .def("bind", &session::bind, "sizes"_a, "on_device"_a, nb::keep_alive<0, 1>())
      .def("last_program", &session::last_program)
      .def("close", &session::close)
      .def_prop_ro("closed", &session::closed)
      .def_prop_ro("device", &session::device);
  kiln::python::bind_decoder(m);
}
