#include "ir/shape.hpp"

#include <algorithm>

#include "ir/dims_differ.hpp"

namespace kiln {
namespace {

constexpr std::int64_t max_tensor_elements = std::int64_t{1} << 46;

}  // namespace

bool shape::is_static() const {
  return std::all_of(dims.begin(), dims.end(), [](const dim& d) { return d.is_static(); });
}

dim shape::elements() const {
  dim product = 1;
  for (const dim& d : dims) product = product * d;
  return product;
}

std::int64_t shape::element_count() const {
  for (const dim& d : dims)
    if (d.value() < 0) throw error(error_kind::invalid_model, "negative dimension in " + str());
  std::int64_t count = elements().value();
  // Reject huge shapes from files or --dim, so that sizes in bytes cannot wrap around to a small number.
  if (count > max_tensor_elements)
    throw error(error_kind::invalid_model, str() + " has more elements than any memory holds");
  return count;
}

std::size_t shape::bytes() const { return storage_bytes(type, static_cast<std::size_t>(element_count())); }

std::vector<std::int64_t> shape::static_dims() const {
  std::vector<std::int64_t> result;
  for (const dim& d : dims) result.push_back(d.value());
  return result;
}

shape shape::substitute(const dim_bindings& bindings) const {
  shape result{type, {}};
  for (const dim& d : dims) result.dims.push_back(d.substitute(bindings));
  return result;
}

std::string shape::str() const {
  std::string text(name(type));
  text += '[';
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i) text += ", ";
    text += dims[i].str();
  }
  return text + ']';
}

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

std::vector<dim> broadcast_dims(const std::vector<dim>& a, const std::vector<dim>& b) {
  const auto& longer = a.size() >= b.size() ? a : b;
  const auto& shorter = a.size() >= b.size() ? b : a;
  std::vector<dim> result = longer;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    dim& out = result[longer.size() - shorter.size() + i];
    const dim& other = shorter[i];
    if (out == other || other == dim(1)) continue;
    if (out == dim(1)) {
      out = other;
      continue;
    }
    std::string message = "dimensions " + out.str() + " and " + other.str() + " do not broadcast";
    if ((out - other).is_static()) throw error(error_kind::invalid_model, message);
    throw dims_differ(message, out, other);
  }
  return result;
}

std::int64_t normalize_axis(std::int64_t axis, std::size_t rank) {
  auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r)
    throw error(error_kind::invalid_model,
                "axis " + std::to_string(axis) + " is outside a tensor of rank " + std::to_string(rank));
  return axis < 0 ? axis + r : axis;
}

}  // namespace kiln
