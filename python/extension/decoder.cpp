#include "python/extension/decoder.hpp"

#include <nanobind/stl/string.h>

#include <utility>

#include "python/extension/status.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace kiln::python {
namespace {

// Runs a call of the C interface without the interpreter's lock.
template <class F>
void unlocked(F&& call) {
  const outcome result = [&] {
    nb::gil_scoped_release released;
    return outcome(call());
  }();
  check(result);
}

template <class T, class Shape>
nb::object numpy_array(T* data, const Shape& shape) {
  nb::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner));
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<decoder>(self)->functions().traverse(visit, arg) : 0;
}

int clear(PyObject* self) {
  decoder* d = nb::inst_ptr<decoder>(self);
  d->close();
  d->functions().clear();
  return 0;
}

PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {Py_tp_clear, reinterpret_cast<void*>(&clear)}, {0, nullptr}};

}  // namespace

kiln_sequences* sequences::open() const {
  if (!handle_) raise(KILN_USAGE, "sequences: they are closed");
  return handle_.get();
}

nb::object sequences::append(const id_array& ids) {
  kiln_sequences* handle = open();
  const std::size_t rows = ids.shape(0), width = static_cast<std::size_t>(vocabulary_);
  std::unique_ptr<float[]> logits(new float[rows * width]);
  unlocked([&] { return kiln_sequences_append(handle, rows, ids.shape(1), ids.data(), logits.get()); });
  return numpy_array(logits.release(), std::array{rows, width});
}

nb::object sequences::choose(const kiln_sampling& sampling) {
  kiln_sequences* handle = open();
  const std::size_t count = rows();
  std::unique_ptr<std::int64_t[]> ids(new std::int64_t[count]);
  unlocked([&] { return kiln_sequences_choose(handle, &sampling, ids.get()); });
  return numpy_array(ids.release(), std::array{count});
}

std::size_t sequences::rows() const {
  std::size_t result = 0;
  kiln_sequences* handle = open();
  unlocked([&] { return kiln_sequences_get_length(handle, &result, nullptr); });
  return result;
}

std::int64_t sequences::length() const {
  std::int64_t result = 0;
  kiln_sequences* handle = open();
  unlocked([&] { return kiln_sequences_get_length(handle, nullptr, &result); });
  return result;
}

void sequences::rollback(std::int64_t count) {
  kiln_sequences* handle = open();
  unlocked([&] { return kiln_sequences_rollback(handle, count); });
}

void sequences::reset() {
  kiln_sequences* handle = open();
  unlocked([&] { return kiln_sequences_reset(handle); });
}

sequences sequences::copy() {
  kiln_sequences *handle = open(), *made = nullptr;
  unlocked([&] { return kiln_sequences_copy(handle, &made); });
  return {sequences_handle(made), vocabulary_};
}

void sequences::save(const std::string& path) {
  kiln_sequences* handle = open();
  unlocked([&] { return kiln_sequences_save(handle, path.c_str()); });
}

void sequences::close() {
  sequences_handle closing = std::move(handle_);
  nb::gil_scoped_release released;
  closing.reset();
}

decoder::decoder(session_choice choice, std::int64_t context, nb::object progress, nb::object warn)
    : choice_(std::move(choice)), callbacks_(std::move(progress), std::move(warn)) {
  kiln_open_options options = choice_.common_options();
  callbacks_.install(options);
  kiln_decoder* opened = nullptr;
  unlocked([&] { return kiln_decoder_open(choice_.path.c_str(), &options, context, &opened); });
  handle_.reset(opened);
  check(kiln_decoder_get_info(opened, &info_));
}

kiln_decoder* decoder::open() const {
  if (!handle_) raise(KILN_USAGE, "decoder: it is closed");
  return handle_.get();
}

sequences decoder::make() {
  kiln_sequences* made = nullptr;
  kiln_decoder* handle = open();
  unlocked([&] { return kiln_sequences_create(handle, &made); });
  return {sequences_handle(made), info_.vocabulary};
}

sequences decoder::load(const std::string& path) {
  kiln_sequences* made = nullptr;
  kiln_decoder* handle = open();
  unlocked([&] { return kiln_sequences_load(handle, path.c_str(), &made); });
  return {sequences_handle(made), info_.vocabulary};
}

void decoder::close() {
  auto closing = std::move(handle_);
  nb::gil_scoped_release released;
  closing.reset();
}

void bind_decoder(nb::module_& m) {
  nb::class_<sequences>(m, "Sequences", nb::is_weak_referenceable())
      .def("append", &sequences::append, "ids"_a)
      .def(
          "choose",
          [](sequences& self, int method, double temperature, std::size_t top_k, double top_p, double penalty,
             std::uint64_t seed) {
            return self.choose({sizeof(kiln_sampling), static_cast<kiln_sampling_method>(method), temperature, top_k,
                                top_p, penalty, seed});
          },
          "method"_a, "temperature"_a, "top_k"_a, "top_p"_a, "repetition_penalty"_a, "seed"_a)
      .def_prop_ro("rows", &sequences::rows)
      .def_prop_ro("length", &sequences::length)
      .def("rollback", &sequences::rollback, "count"_a)
      .def("reset", &sequences::reset)
      .def("copy", &sequences::copy, nb::keep_alive<0, 1>())
      .def("save", &sequences::save, "path"_a)
      .def("close", &sequences::close);
  nb::class_<decoder>(m, "Decoder", nb::is_weak_referenceable(), nb::type_slots(slots))
      .def(
          "__init__",
          [](decoder* self, std::string path, std::string device, unsigned threads, std::int64_t context,
             std::string cache, std::string trusted_keys, bool no_cache, bool only_cached, bool allow_unsigned,
             nb::object progress, nb::object warn) {
            new (self) decoder({.path = std::move(path),
                                .device = std::move(device),
                                .threads = threads,
                                .cache_folder = std::move(cache),
                                .trusted_keys = std::move(trusted_keys),
                                .no_cache = no_cache,
                                .only_cached = only_cached,
                                .allow_unsigned = allow_unsigned},
                               context, std::move(progress), std::move(warn));
          },
          "path"_a, nb::kw_only(), "device"_a, "threads"_a, "context"_a, "cache"_a, "trusted_keys"_a, "no_cache"_a,
          "only_cached"_a, "allow_unsigned"_a, "progress"_a.none(), "warn"_a.none())
      .def_prop_ro("vocabulary", &decoder::vocabulary)
      .def_prop_ro("context", &decoder::context)
      .def_prop_ro("device", &decoder::device)
      .def_prop_ro("closed", &decoder::closed)
      .def("sequences", &decoder::make, nb::keep_alive<0, 1>())
      .def("load", &decoder::load, "path"_a, nb::keep_alive<0, 1>())
      .def("close", &decoder::close);
}

}  // namespace kiln::python
