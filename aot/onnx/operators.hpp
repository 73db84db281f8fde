// The table of ONNX operators. Each file of ops/ lists its own rows; operators.cpp joins them.
#pragma once

#include <span>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// Returns null for an unknown operator.
const operator_row* find_operator(std::string_view domain, std::string_view name);

std::span<const operator_row> unary_operators();
std::span<const operator_row> binary_operators();
std::span<const operator_row> shape_operators();
std::span<const operator_row> movement_operators();
std::span<const operator_row> indexing_operators();
std::span<const operator_row> generator_operators();
std::span<const operator_row> convolution_operators();
std::span<const operator_row> pooling_operators();
std::span<const operator_row> normalization_operators();
std::span<const operator_row> matmul_operators();
std::span<const operator_row> einsum_operators();
std::span<const operator_row> reduction_operators();
std::span<const operator_row> resize_operators();
std::span<const operator_row> recurrent_operators();
std::span<const operator_row> control_operators();
std::span<const operator_row> scan_operators();
std::span<const operator_row> quantization_operators();
std::span<const operator_row> loss_operators();
std::span<const operator_row> grid_sample_operators();
std::span<const operator_row> bounded_operators();
std::span<const operator_row> attention_operators();
std::span<const operator_row> flex_attention_operators();
std::span<const operator_row> linear_attention_operators();
std::span<const operator_row> dropout_operators();
std::span<const operator_row> contrib_attention_operators();
std::span<const operator_row> contrib_activation_operators();
std::span<const operator_row> contrib_normalization_operators();
std::span<const operator_row> contrib_matmul_operators();
std::span<const operator_row> contrib_quantization_operators();
std::span<const operator_row> contrib_synonym_operators();
std::span<const operator_row> contrib_expert_operators();
std::span<const operator_row> contrib_position_operators();
std::span<const operator_row> contrib_tensor_operators();
std::span<const operator_row> group_query_attention_operators();
std::span<const operator_row> machine_learning_operators();
std::span<const operator_row> tree_operators();
std::span<const operator_row> encoder_operators();
std::span<const operator_row> support_vector_operators();
std::span<const operator_row> signal_operators();
std::span<const operator_row> image_operators();
std::span<const operator_row> sequence_operators();
std::span<const operator_row> deform_conv_operators();
std::span<const operator_row> determinant_operators();
std::span<const operator_row> max_position_operators();
std::span<const operator_row> ngram_operators();
std::span<const operator_row> sampling_operators();
std::span<const operator_row> training_operators();
std::span<const operator_row> sparse_attention_operators();
std::span<const operator_row> paged_attention_operators();
std::span<const operator_row> varlen_convolution_operators();
std::span<const operator_row> contrib_window_operators();
std::span<const operator_row> contrib_alignment_operators();
std::span<const operator_row> repeated_ngram_operators();
std::span<const operator_row> block_scaled_weight_operators();
std::span<const operator_row> early_operators();

}  // namespace kiln::onnx_import
