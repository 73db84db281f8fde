// Recurrent layers that the operation `recurrent` does not have: other activations, clipping and peepholes.
// They become a loop with one iteration for each time step, also for sequences of different lengths.
#pragma once

#include <string>
#include <vector>

#include "aot/onnx/node.hpp"
#include "ir/ops/recurrent.hpp"

namespace kiln::onnx_import {

// An activation of ONNX's recurrent operators with its parameters.
struct recurrent_activation {
  std::string name;  // in lower case
  double alpha = 0, beta = 0;
};

// One direction of a layer. The operands are those of `recurrent`: products [T, B, G*H], weights [G*H, H],
// recurrent_bias [G*H] and initial states [B, H]; `c` is of an LSTM only.
struct recurrent_direction {
  recurrent op;
  std::vector<recurrent_activation> activations;  // f, g, h of the operator's document
  double clip = 0;                                // 0: none
  bool input_forget = false;
  value products, weights, bias, h, c;
  value peepholes;  // [3*H] or empty
  value lengths;    // [B] or empty
};

// The activations of direction `d`, `count` of them, from the node's attributes. Refuses unknown names.
std::vector<recurrent_activation> activations_of(const node& n, const std::vector<std::string>& defaults,
                                                 std::size_t d);

// Y [T, B, H], the final h and, for an LSTM, the final c.
std::vector<value> stepped_direction(node& n, const recurrent_direction& layer);

}  // namespace kiln::onnx_import
