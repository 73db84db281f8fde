#include "mlir_bridge/gpu/contraction/packed_product.hpp"

namespace kiln::gpu {

void add_packed_products(code_builder& code, const matrix_product& product, const matrix_instruction& unit,
                         std::span<const loaded_codes> codes, bool is_signed, std::span<const Value> rows,
                         std::span<Value> sums) {
  std::vector<fragment> right;
  for (Value chunk : rows) right.push_back({{in_pairs(code, chunk)}});
  const auto parts = static_cast<std::size_t>(unit.a.parts);
  for (std::size_t tile = 0; tile < codes.size() / parts; ++tile) {
    const auto own = codes.subspan(tile * parts, parts);
    values group = product.zeros(1);
    for (std::size_t turn = 0; turn < rows.size(); ++turn) {
      fragment left;
      for (const loaded_codes& part : own)
        left.chunks.push_back(chunk_of_codes(code, code.lane(part.words, static_cast<std::int64_t>(turn)), is_signed));
      for (std::int64_t step = 0; step < product.steps_of_fragment(); ++step)
        product.add(left, right[turn], step, group);
    }
    for (std::size_t r = 0; r < group.size(); ++r) {
      const auto part = static_cast<std::size_t>(unit.d.row_of_register[r] / unit.a.part_rows);
      Value& sum = sums[tile * group.size() + r];
      sum = code.fma(group[r], own[part].scale, sum);
    }
  }
}

}  // namespace kiln::gpu
