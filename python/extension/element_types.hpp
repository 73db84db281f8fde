// The table of element types: what Kiln, DLPack and the buffer protocol call them.
#pragma once

#include <nanobind/ndarray.h>

#include <span>

#include "runtime/kiln.h"

namespace kiln::python {

struct element_type_row {
  kiln_type type;
  const char* name;   // Kiln's, as `kiln inspect` prints it
  const char* array;  // the numpy dtype of outputs; those of ml_dtypes have its names
  nanobind::dlpack::dtype dlpack;
  // Arrays of unsigned integers of this size are accepted, too: numpy's buffers cannot express the type.
  bool as_bits;
};

// Indexed by kiln_type.
std::span<const element_type_row> element_types();
inline const element_type_row& row_of(kiln_type type) { return element_types()[static_cast<std::size_t>(type)]; }

// The DLPack type of one element in the format of the buffer protocol; bits is 0 if there is none.
nanobind::dlpack::dtype dtype_of_format(const char* format, std::size_t item_bytes);

// "float32" and so on, for messages.
std::string name_of(nanobind::dlpack::dtype type);

// Whether an array of this type can be the tensor.
bool fits(const element_type_row& row, nanobind::dlpack::dtype type);

}  // namespace kiln::python
