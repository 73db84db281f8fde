// Attention of one row by one wave of the vector unit: its lanes are keys for the scores and depths for the result.
// Internal to mlir_bridge/kinds/attention/gpu.
#pragma once

#include "mlir_bridge/kinds/attention/gpu/attention.hpp"

namespace kiln::gpu {

// The maximum score and the sum of the weights, which are equal in all lanes, and the weighted sums of this lane's
// depths (lane, lane + wave, ...).
struct wave_row {
  Value top, sum;
  values results;
};

// Number of depths that a lane has.
std::int64_t depths_of_lane(const attention_problem& p);
// Attends to the keys [low, high). `weights` is shared memory for one f32 of each lane of the wave.
wave_row attend(const attention_problem& p, workgroup& group, const attention_problem::place& at, Value row, Value low,
                Value high, Value weights);
// What is subtracted from scores with this maximum. If no key has been seen it is 0, because -inf - (-inf) is NaN.
Value shift_of(code_builder& code, Value top);
Value power(code_builder& code, Value a, Value b);  // 2^(a - b)
// Divides by the sum of the weights and stores the row to the output.
void store_row(const attention_problem& p, const workgroup& group, const attention_problem::place& at, Value row,
               Value is_valid, const wave_row& found);

}  // namespace kiln::gpu
