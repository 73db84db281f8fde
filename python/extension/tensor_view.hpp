// An array of the caller's as the C interface takes it: a pointer, sizes, an element type and where it lies. The view
// keeps the array alive. All functions need the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace kiln::python {

// A buffer of the buffer protocol, released with this object.
class python_buffer {
 public:
  // Holds nothing if the object has no buffer of this kind.
  python_buffer(PyObject* object, int flags) { held_ = PyObject_GetBuffer(object, &buffer_, flags) == 0; }
  python_buffer(python_buffer&& other) noexcept : buffer_(other.buffer_), held_(std::exchange(other.held_, false)) {}
  python_buffer& operator=(python_buffer&&) = delete;
  ~python_buffer() {
    if (held_) PyBuffer_Release(&buffer_);
  }
  explicit operator bool() const { return held_; }
  const Py_buffer& get() const { return buffer_; }

 private:
  Py_buffer buffer_{};
  bool held_ = false;
};

struct tensor_view {
  void* data = nullptr;
  std::vector<std::int64_t> dims;
  nanobind::dlpack::dtype dtype;
  bool on_device = false;  // of a GPU
  bool dense = false;      // row-major without gaps, aligned to its elements
  bool writable = false;
  std::variant<nanobind::object, python_buffer, nanobind::ndarray<nanobind::ro>> owner;
};

// The view of an object with the buffer protocol, DLPack or __cuda_array_interface__. Null if the object is none of
// these, or if its elements have no type that Kiln knows.
std::optional<tensor_view> view(nanobind::handle object);

}  // namespace kiln::python
