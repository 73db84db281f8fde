// The stages of a pipeline in shared memory, as threads visit them one after the other. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"

namespace kiln::gpu {

// The next stage, and the parity of its phase (i32).
struct stage_cursor {
  Value stage, parity;
};

// Returns the cursor after one more of `stages` stages.
inline stage_cursor next(code_builder& code, hopper_code& hopper, const stage_cursor& at, std::int64_t stages) {
  Value stage = code.add(at.stage, 1), wraps = code.equal(stage, hopper.number(stages));
  Value flipped = code.make<mlir::arith::XOrIOp>(at.parity, hopper.number(1));
  return {code.select(wraps, hopper.number(0), stage), code.select(wraps, flipped, at.parity)};
}

inline stage_cursor select(code_builder& code, Value condition, const stage_cursor& a, const stage_cursor& b) {
  return {code.select(condition, a.stage, b.stage), code.select(condition, a.parity, b.parity)};
}

// Returns the cursor after `count` more.
inline stage_cursor advanced(code_builder& code, hopper_code& hopper, const stage_cursor& at, std::int64_t count,
                             std::int64_t stages) {
  const Value stage = code.add(at.stage, count % stages), stays = code.less(stage, hopper.number(stages));
  const std::int64_t rounds = count / stages;
  const Value phases = code.select(stays, hopper.number(rounds % 2), hopper.number((rounds + 1) % 2));
  return {code.select(stays, stage, code.sub(stage, stages)), code.make<mlir::arith::XOrIOp>(at.parity, phases)};
}

}  // namespace kiln::gpu
