#include "mlir_bridge/kinds/attention/gpu/lane_layout.hpp"

namespace kiln::gpu {

lane_layout::lane_layout(const matrix_instruction& unit, target_family family, int wave)
    : nvidia_(family == target_family::nvidia) {
  const result_map& d = unit.d;
  rows_are_a = nvidia_;
  row_parts = nvidia_ ? unit.a.parts : 1;
  part_rows = nvidia_ ? unit.a.part_rows : 0;
  key_tile = nvidia_ ? unit.n : unit.m;
  lanes_of_group_ = nvidia_ ? 1 : d.row_lanes;
  lane_groups = nvidia_ ? d.column_lanes : wave / d.row_lanes;
  group_keys = lane_groups * chunk;
  tiles_of_group = group_keys / key_tile;
  whole_row = unit.b.whole_row;
  registers_ = d.registers / row_parts;
  key_of_lane_group = nvidia_ ? d.column_scale : d.row_scale;
  for (std::int64_t e = 0; e < chunk; ++e) {
    const std::int64_t tile = e / registers_, r = e % registers_;
    keys_[static_cast<std::size_t>(e)] =
        tile * key_tile + (nvidia_ ? d.column_of_register : d.row_of_register)[static_cast<std::size_t>(r)];
  }
}

std::int64_t lane_layout::run() const {
  std::int64_t n = 1;
  while (n < chunk && key(0, n) == key(0, 0) + n) ++n;
  return n;
}

Value lane_layout::row_of_lane(code_builder& code, Value lane) const {
  return nvidia_ ? code.div(lane, lane_groups) : code.rem(lane, lanes_of_group_);
}
Value lane_layout::lane_group(code_builder& code, Value lane) const {
  return nvidia_ ? code.rem(lane, lane_groups) : code.div(lane, lanes_of_group_);
}

std::vector<std::int64_t> lane_layout::row_masks() const {
  std::vector<std::int64_t> masks;
  for (std::int64_t n = 1; n < lane_groups; n *= 2) masks.push_back(n * lanes_of_group_);
  return masks;
}

Value lane_layout::element(code_builder& code, std::span<const Value> sums, std::int64_t part, std::int64_t group,
                           std::int64_t e) const {
  const std::int64_t tile = group * tiles_of_group + e / registers_, r = part * registers_ + e % registers_;
  if (nvidia_) return sums[static_cast<std::size_t>(tile * registers_ * row_parts + r)];
  return code.lane(sums[static_cast<std::size_t>(tile)], r);
}

void lane_layout::scale(code_builder& code, values& sums, std::span<const Value> of_part) const {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t part =
        nvidia_ ? i % static_cast<std::size_t>(registers_ * row_parts) / static_cast<std::size_t>(registers_) : 0;
    sums[i] = code.make<mlir::arith::MulFOp>(sums[i], code.splat(of_part[part], code_builder::lanes_of(sums[i])));
  }
}

}  // namespace kiln::gpu
