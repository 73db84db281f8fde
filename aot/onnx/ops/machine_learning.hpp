// What the importers of the ai.onnx.ml domain share.
#pragma once

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

inline constexpr std::string_view ml_domain = "ai.onnx.ml";

// An attribute that is a list of floats; empty where the node lacks it.
std::vector<float> floats_of(const node& n, std::string_view name);
// The attribute as a constant f32 tensor; its number of elements must be that of `dims`.
value float_table(node& n, std::string_view name, const std::vector<dim>& dims);
// X as f32[N, F]; a vector is one row.
value feature_rows(node& n);
// Attribute post_transform on scores [N, classes].
value transformed_scores(node& n, value scores);
// The scores of the two classes of a classifier that has one score, s: of the second class. `symmetric`: the first
// class has -s, else 1 - s. Like onnxruntime, a softmax leaves these two as they are.
value two_class_scores(node& n, value s, bool symmetric);
// Attribute classlabels_ints (or its older name) by index i64[N]. Refuses text.
value class_labels(node& n, value index);
std::size_t number_of_labels(const node& n);

}  // namespace kiln::onnx_import
