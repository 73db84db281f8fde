#include "python/extension/tensor_view.hpp"

#include "python/extension/element_types.hpp"

namespace nb = nanobind;

namespace kiln::python {
namespace {

bool is_aligned(const void* data, std::size_t item_bytes) {
  return item_bytes == 0 || reinterpret_cast<std::uintptr_t>(data) % item_bytes == 0;
}

std::optional<tensor_view> view_of_buffer(nb::handle object) {
  python_buffer buffer(object.ptr(), PyBUF_FORMAT | PyBUF_STRIDES);
  if (!buffer) {
    PyErr_Clear();
    return std::nullopt;
  }
  const Py_buffer& b = buffer.get();
  const auto item = static_cast<std::size_t>(b.itemsize);
  const nb::dlpack::dtype dtype = dtype_of_format(b.format, item);
  if (dtype.bits == 0) return std::nullopt;
  return tensor_view{.data = b.buf,
                     .dims = {b.shape, b.shape + b.ndim},
                     .dtype = dtype,
                     .on_device = false,
                     .dense = PyBuffer_IsContiguous(&b, 'C') && is_aligned(b.buf, item),
                     .writable = !b.readonly,
                     .owner = std::move(buffer)};
}

std::optional<tensor_view> view_of_dlpack(nb::handle object) {
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array, false)) return std::nullopt;
  std::vector<std::int64_t> dims(array.ndim());
  bool dense = true;
  std::int64_t stride = 1;
  for (std::size_t i = array.ndim(); i-- > 0; stride *= dims[i]) {
    dims[i] = static_cast<std::int64_t>(array.shape(i));
    dense &= dims[i] == 1 || array.stride(i) == stride;
  }
  dense |= array.size() == 0;
  const bool host =
      array.device_type() == nb::device::cpu::value || array.device_type() == nb::device::cuda_host::value;
  return tensor_view{.data = const_cast<void*>(static_cast<const void*>(array.data())),
                     .dims = std::move(dims),
                     .dtype = array.dtype(),
                     .on_device = !host,
                     .dense = dense && is_aligned(array.data(), array.itemsize()),
                     .writable = true,  // DLPack's older form does not say
                     .owner = std::move(array)};
}

}  // namespace

std::optional<tensor_view> view(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()))
    if (auto found = view_of_buffer(object)) return found;
  return view_of_dlpack(object);
}

}  // namespace kiln::python
