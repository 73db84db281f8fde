// Helpers shared by the importers of the ai.onnx.ml domain.
#pragma once

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

inline constexpr std::string_view ml_domain = "ai.onnx.ml";

// An attribute that is a list of floats; empty if the node lacks it.
std::vector<float> floats_of(const node& n, std::string_view name);
// Returns the value of a tensor attribute, or nullopt if the node lacks it.
std::optional<literal> tensor_attribute(node& n, std::string_view name);
// Returns a list of floats from the attribute NAME or of doubles from NAME_as_tensor; empty if the node has neither.
std::vector<double> numbers_of(node& n, const std::string& name);
// The attribute as a constant f32 tensor. It must have as many elements as `dims`.
value float_table(node& n, std::string_view name, const std::vector<dim>& dims);
// Returns input X as f32[N, F], or as f64 if it is f64 and `keep_double` is set. A vector becomes one row.
value feature_rows(node& n, bool keep_double = false);
// Applies a post_transform to scores [N, classes]. The overload without `kind` uses the node's attribute.
value transformed_scores(node& n, value scores, std::string_view kind);
value transformed_scores(node& n, value scores);
// Returns the scores of both classes for a binary classifier that has one score s, that of the second class. The first
// class gets -s if `symmetric`, else 1 - s. Like onnxruntime, a softmax does not change these two scores.
value two_class_scores(node& n, value s, bool symmetric);
// Looks up the labels in the attribute classlabels_ints (or its older name) by index i64[N]. If labels are text,
// returns the indices, and records the texts in the scope (texts.hpp).
value class_labels(node& n, value index);
std::size_t number_of_labels(const node& n);

}  // namespace kiln::onnx_import
