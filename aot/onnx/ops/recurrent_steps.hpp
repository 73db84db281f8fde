// Recurrent layers with activations, clipping or peepholes that the operation `recurrent` does not support. They become
// a loop with one iteration per time step, also for sequences of different lengths.
#pragma once

#include <string>
#include <vector>

#include "aot/onnx/node.hpp"
#include "ir/ops/recurrent.hpp"

namespace kiln::onnx_import {

// An activation of ONNX's recurrent operators with its parameters.
struct recurrent_activation {
  // Name of the activation in lower case.
  std::string name;
  double alpha = 0, beta = 0;
};

// One direction of a layer. The operands are those of `recurrent`: products [T, B, G*H], weights [G*H, H],
// recurrent_bias [G*H] and initial states [B, H]. Only an LSTM has `c`.
struct recurrent_direction {
  recurrent op;
  // The activations f, g and h of the operator's specification.
  std::vector<recurrent_activation> activations;
  // Clipping threshold; 0 means no clipping.
  double clip = 0;
  bool input_forget = false;
  value products, weights, bias, h, c;
  value peepholes;  // [3*H] or empty
  value lengths;    // [B] or empty
};

// Reads the `count` activations of direction `d` from the node's attributes. Refuses unknown names.
std::vector<recurrent_activation> activations_of(const node& n, const std::vector<std::string>& defaults,
                                                 std::size_t d);

// Returns Y [T, B, H], the final h and, for an LSTM, the final c.
std::vector<value> stepped_direction(node& n, const recurrent_direction& layer);

}  // namespace kiln::onnx_import
