// Helpers shared by the importers of the ai.onnx.ml domain.
#pragma once

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

inline constexpr std::string_view ml_domain = "ai.onnx.ml";

// An attribute that is a list of floats; empty if the node lacks it.
std::vector<float> floats_of(const node& n, std::string_view name);
// The attribute as a constant f32 tensor. It must have as many elements as `dims`.
value float_table(node& n, std::string_view name, const std::vector<dim>& dims);
// Input X as f32[N, F]. A vector becomes one row.
value feature_rows(node& n);
// Applies the attribute post_transform to scores [N, classes].
value transformed_scores(node& n, value scores);
// Returns the scores of both classes for a binary classifier that has one score s, that of the second class. The first
// class gets -s if `symmetric`, else 1 - s. Like onnxruntime, a softmax does not change these two scores.
value two_class_scores(node& n, value s, bool symmetric);
// Looks up the attribute classlabels_ints (or its older name) by index i64[N]. Refuses string labels.
value class_labels(node& n, value index);
std::size_t number_of_labels(const node& n);

}  // namespace kiln::onnx_import
