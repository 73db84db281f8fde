// Sequences of different lengths that follow each other along one axis of tokens, without padding. onnxruntime's
// operators for servers take their tokens so.
#pragma once

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

struct packed_tokens {
  dim tokens, sequences;
  value starts;       // i64[sequences + 1]: the first token of each sequence, then the number of tokens
  value sequence_of;  // i64[tokens]: the sequence of each token
  value place_of;     // i64[tokens]: the position of each token in its sequence
  value lengths;      // i64[sequences]
};

// `cumulative` [sequences + 1] holds the first token of each sequence, then the number of tokens.
packed_tokens packed_tokens_of(builder& b, const dim& tokens, const dim& sequences, value cumulative);

}  // namespace kiln::onnx_import
