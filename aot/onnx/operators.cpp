#include "aot/onnx/operators.hpp"

#include <algorithm>
#include <map>

#include "aot/onnx/import.hpp"
#include "spirv/library/library.hpp"

namespace kiln {
namespace onnx_import {
namespace {

using table = std::map<std::pair<std::string_view, std::string_view>, const operator_row*>;

const table& operators() {
  static const table rows = [] {
    table result;
    for (auto group : {unary_operators, binary_operators, shape_operators, movement_operators, indexing_operators, generator_operators, convolution_operators,
                       pooling_operators, normalization_operators, matmul_operators, einsum_operators, reduction_operators, resize_operators, recurrent_operators,
                       control_operators, quantization_operators, loss_operators, grid_sample_operators, counted_operators})
      for (const operator_row& row : group()) result.emplace(std::pair(row.domain, row.name), &row);
    return result;
  }();
  return rows;
}

}  // namespace

const operator_row* find_operator(std::string_view domain, std::string_view name) {
  auto found = operators().find({domain, name});
  return found == operators().end() ? nullptr : found->second;
}

}  // namespace onnx_import

std::vector<onnx_operator> supported_onnx_operators() {
  std::vector<onnx_operator> result;
  for (const auto& [key, row] : onnx_import::operators()) result.push_back({row->domain, row->name, row->min_opset, row->max_opset, row->notes});
  for (const spirv::object& o : spirv::library())
    if (o.domain.empty() && std::ranges::none_of(result, [&](const onnx_operator& known) { return known.domain.empty() && known.name == o.name; }))
      result.push_back({o.domain, o.name, 1, 21, "float32; a HIP kernel"});
  std::ranges::sort(result, {}, [](const onnx_operator& o) { return std::pair(o.domain, o.name); });
  return result;
}

}  // namespace kiln
