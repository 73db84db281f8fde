// The loop of torchvision's Mask R-CNN that pastes the mask of each detection into an image: it resizes each mask to
// the size of its box, which is other data in each trip, and fills the image around it with zeros.
#pragma once

#include <optional>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// Returns the images [detections, height, width] if the body of the loop pastes masks, computed as two products of
// matrices with the weights of linear interpolation. To be sure of it, the body is imported and evaluated for a few
// masks and boxes, and compared. Returns nullopt for any other loop.
std::optional<value> pasted_masks(node& n, const ::onnx::GraphProto& body);

}  // namespace kiln::onnx_import
