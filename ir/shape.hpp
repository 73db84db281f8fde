// A tensor's element type and dimensions. Tensors are always dense and row-major; another layout is expressed as a
// transpose to another shape.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ir/dim.hpp"
#include "ir/element_type.hpp"

namespace kiln {

struct shape {
  element_type type = element_type::f32;
  std::vector<dim> dims;

  std::size_t rank() const { return dims.size(); }
  bool is_static() const;
  dim elements() const;                           // product of the dims
  std::int64_t element_count() const;             // the same as a number; throws if symbolic or negative
  std::size_t bytes() const;                      // size of dense storage; throws if symbolic
  std::vector<std::int64_t> static_dims() const;  // throws if symbolic
  shape substitute(const dim_bindings& bindings) const;
  shape with_type(element_type other) const { return {other, dims}; }
  std::string str() const;  // "f32[1, 3, 224, 224]"
  friend bool operator==(const shape&, const shape&) = default;
};

// Row-major strides, in elements.
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& dims);

// Numpy's broadcasting: dims are right-aligned and dims of 1 stretch. Throws error{invalid_model} if the dims do not
// fit.
std::vector<dim> broadcast_dims(const std::vector<dim>& a, const std::vector<dim>& b);

// Normalizes an axis from [-rank, rank) to [0, rank); throws error{invalid_model} if it is outside.
std::int64_t normalize_axis(std::int64_t axis, std::size_t rank);

}  // namespace kiln
