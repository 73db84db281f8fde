#include "python/extension/description.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/extension/element_types.hpp"
#include "python/extension/status.hpp"

namespace nb = nanobind;

namespace kiln::python {
namespace {

described_tensor tensor_of(const kiln_port& port) {
  return {port.name, port.type, {port.dims, port.dims + port.rank}, port.decides_sizes != 0};
}

nb::list as_list(const std::vector<described_tensor>& tensors) {
  nb::list result;
  for (const described_tensor& t : tensors) {
    nb::list dims;
    for (const std::string& d : t.dims) dims.append(d);
    result.append(nb::make_tuple(t.name, row_of(t.type).name, nb::tuple(dims)));
  }
  return result;
}

}  // namespace

description describe(const std::string& path) {
  kiln_description* opened = nullptr;
  const outcome opening = [&] {
    nb::gil_scoped_release unlocked;
    return outcome(kiln_description_open(path.c_str(), &opened));
  }();
  check(opening);
  const description_handle handle(opened);
  description result;
  kiln_port port;
  for (std::size_t i = 0; i < kiln_description_input_count(opened); ++i) {
    check(kiln_description_input(opened, i, &port));
    result.inputs.push_back(tensor_of(port));
  }
  for (std::size_t i = 0; i < kiln_description_output_count(opened); ++i) {
    check(kiln_description_output(opened, i, &port));
    result.outputs.push_back(tensor_of(port));
  }
  kiln_dim_info dim;
  for (std::size_t i = 0; i < kiln_description_dim_count(opened); ++i) {
    check(kiln_description_dim(opened, i, &dim));
    result.dims.push_back({dim.name, dim.min, dim.max});
  }
  result.has_weights = kiln_description_has_weights(opened) != 0;
  return result;
}

nb::tuple as_tuple(const description& d) {
  nb::list dims;
  for (const described_dim& dim : d.dims) dims.append(nb::make_tuple(dim.name, dim.min, dim.max));
  return nb::make_tuple(as_list(d.inputs), as_list(d.outputs), dims, d.has_weights);
}

}  // namespace kiln::python
