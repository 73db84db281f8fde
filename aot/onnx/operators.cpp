#include "aot/onnx/operators.hpp"

#include <algorithm>
#include <map>

#include "aot/onnx/import.hpp"
#include "aot/onnx/operator_versions.hpp"
#include "spirv/library/library.hpp"

namespace kiln {
namespace onnx_import {
namespace {

using table = std::map<std::pair<std::string_view, std::string_view>, const operator_row*>;

const table& operators() {
  static const table rows = [] {
    table result;
    for (auto group : {unary_operators,
                       binary_operators,
                       shape_operators,
                       movement_operators,
                       indexing_operators,
                       generator_operators,
                       convolution_operators,
                       pooling_operators,
                       normalization_operators,
                       matmul_operators,
                       einsum_operators,
                       reduction_operators,
                       resize_operators,
                       recurrent_operators,
                       control_operators,
                       scan_operators,
                       quantization_operators,
                       loss_operators,
                       grid_sample_operators,
                       bounded_operators,
                       attention_operators,
                       flex_attention_operators,
                       linear_attention_operators,
                       dropout_operators,
                       contrib_attention_operators,
                       contrib_activation_operators,
                       contrib_normalization_operators,
                       contrib_matmul_operators,
                       contrib_quantization_operators,
                       contrib_synonym_operators,
                       contrib_expert_operators,
                       contrib_position_operators,
                       contrib_tensor_operators,
                       group_query_attention_operators,
                       machine_learning_operators,
                       tree_operators,
                       encoder_operators,
                       support_vector_operators,
                       signal_operators,
                       image_operators,
                       sequence_operators,
                       deform_conv_operators,
                       determinant_operators,
                       max_position_operators,
                       ngram_operators,
                       sampling_operators,
                       training_operators,
                       sparse_attention_operators,
                       paged_attention_operators,
                       varlen_convolution_operators,
                       contrib_window_operators,
                       contrib_alignment_operators,
                       repeated_ngram_operators,
                       block_scaled_weight_operators,
                       early_operators})
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
  auto add = [&](std::string_view domain, std::string_view name, int min_opset, std::string_view notes) {
    const auto* version = domain.empty() ? onnx_import::find_operator_version(name) : nullptr;
    result.push_back({domain, name, version ? version->newest : min_opset, min_opset,
                      version ? version->last_opset() : min_opset, notes});
  };
  for (const auto& [key, row] : onnx_import::operators()) add(row->domain, row->name, row->min_opset, row->notes);
  for (const spirv::object& o : spirv::library())
    if (o.domain.empty() && std::ranges::none_of(result, [&](const onnx_operator& known) {
          return known.domain.empty() && known.name == o.name;
        }))
      add(o.domain, o.name, 1, "computed in float32; a HIP kernel");
  std::ranges::sort(result, {}, [](const onnx_operator& o) { return std::pair(o.domain, o.name); });
  return result;
}

int newest_onnx_opset() { return onnx_import::newest_opset; }

}  // namespace kiln
