// Helpers shared by the importers of the ai.onnx.ml domain.
#pragma once

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

inline constexpr std::string_view ml_domain = "ai.onnx.ml";

// An attribute that is a list of floats; empty if the node lacks it.
std::vector<float> floats_of(const node& n, std::string_view name);
// An attribute that is a tensor, if the node has it.
std::optional<literal> tensor_attribute(node& n, std::string_view name);
// A list of floats, or the tensor of doubles NAME_as_tensor that may stand in its place; empty if the node lacks both.
std::vector<double> numbers_of(node& n, const std::string& name);
// The attribute as a constant f32 tensor. It must have as many elements as `dims`.
value float_table(node& n, std::string_view name, const std::vector<dim>& dims);
// Input X as f32[N, F]; f64 stays if `keep_double`. A vector becomes one row.
value feature_rows(node& n, bool keep_double = false);
// Applies a post_transform to scores [N, classes]; the short form takes the one of the attribute.
value transformed_scores(node& n, value scores, std::string_view kind);
value transformed_scores(node& n, value scores);
// Returns the scores of both classes for a binary classifier that has one score s, that of the second class. The first
// class gets -s if `symmetric`, else 1 - s. Like onnxruntime, a softmax does not change these two scores.
value two_class_scores(node& n, value s, bool symmetric);
// Looks up the attribute classlabels_ints (or its older name) by index i64[N]. Labels that are text stay indices, and
// the scope knows their texts (texts.hpp).
value class_labels(node& n, value index);
std::size_t number_of_labels(const node& n);

}  // namespace kiln::onnx_import
