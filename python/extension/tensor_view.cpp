#include "python/extension/tensor_view.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>

#include "python/extension/element_types.hpp"

namespace nb = nanobind;

namespace kiln::python {
namespace {

bool is_aligned(const void* data, std::size_t item_bytes) {
  return item_bytes == 0 || reinterpret_cast<std::uintptr_t>(data) % item_bytes == 0;
}

// `item` is the stride of neighbours, in the unit of the strides.
bool is_row_major(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides, std::int64_t item) {
  if (strides.size() != dims.size()) return false;
  bool dense = true;
  std::int64_t stride = item;
  for (std::size_t i = dims.size(); i-- > 0; stride *= dims[i]) dense &= dims[i] == 1 || strides[i] == stride;
  return dense || stride == 0;  // no elements
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
  std::vector<std::int64_t> dims(array.ndim()), strides(array.ndim());
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    dims[i] = static_cast<std::int64_t>(array.shape(i));
    strides[i] = array.stride(i);
  }
  const bool host =
      array.device_type() == nb::device::cpu::value || array.device_type() == nb::device::cuda_host::value;
  return tensor_view{.data = const_cast<void*>(static_cast<const void*>(array.data())),
                     .dims = dims,
                     .dtype = array.dtype(),
                     .on_device = !host,
                     .dense = is_row_major(dims, strides, 1) && is_aligned(array.data(), array.itemsize()),
                     .writable = true,  // DLPack's older form does not say
                     .owner = std::move(array)};
}

// The array interface of Numba and CuPy, version 3: for what has no DLPack.
std::optional<tensor_view> view_of_cuda_array(nb::handle object) {
  const auto facts = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
  const auto type = nb::cast<std::string>(facts["typestr"]);  // "<f4"
  if (type.size() < 3 || type[0] == '>') return std::nullopt;
  constexpr std::string_view kinds = "biuf", formats = "?qQd";  // of the buffer protocol, which has these kinds, too
  const std::size_t kind = kinds.find(type[1]);
  if (kind == kinds.npos) return std::nullopt;
  const std::size_t item = std::stoul(type.substr(2));
  const char format[] = {formats[kind], 0};
  const auto data = nb::cast<nb::tuple>(facts["data"]);
  tensor_view result;
  result.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(data[0]));
  result.writable = !nb::cast<bool>(data[1]);
  result.dims = nb::cast<std::vector<std::int64_t>>(facts["shape"]);
  result.dtype = dtype_of_format(format, item);
  result.on_device = true;
  result.dense = is_aligned(result.data, item);
  if (facts.contains("strides") && !facts["strides"].is_none()) {
    const auto strides = nb::cast<std::vector<std::int64_t>>(facts["strides"]);  // in bytes
    result.dense &= is_row_major(result.dims, strides, static_cast<std::int64_t>(item));
  }
  result.owner = nb::borrow(object);
  return result;
}

}  // namespace

std::optional<tensor_view> view(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()))
    if (auto found = view_of_buffer(object)) return found;
  if (auto found = view_of_dlpack(object)) return found;
  if (nb::hasattr(object, "__cuda_array_interface__")) return view_of_cuda_array(object);
  return std::nullopt;
}

}  // namespace kiln::python
