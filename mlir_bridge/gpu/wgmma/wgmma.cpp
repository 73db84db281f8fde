#include "mlir_bridge/gpu/wgmma/wgmma.hpp"

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_epilogue.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_kernel.hpp"

namespace kiln::gpu {

wgmma_size size_of(const kernel_emitter& e, const wgmma_problem& p) {
  std::map<std::int64_t, std::int64_t> image_tiles;
  if (p.image)
    for (std::int64_t rows : {64, 128, 256}) image_tiles[rows] = with_box(*p.image, rows).tiles();
  return {p.batch,
          p.image ? p.image->images * p.image->out_height * p.image->out_width : p.m,
          p.n * p.products(),
          p.k,
          p.a.parts > 1 ? 2 : storage_bits(p.a.memory.type) / 8,
          p.a.k_inner || p.a.rearrange,
          p.b.k_inner || p.b.rearrange,
          epilogue_bytes(e, p),
          p.a.parts,
          p.a.parts > 1 || is_float8(p.a.memory.type),
          p.b.divided,
          image_tiles,
          p.products(),
          p.epsilon.has_value(),
          p.open_m.has_value()};
}

namespace {

bool try_problem(kernel_emitter& e, std::optional<wgmma_problem> problem) {
  if (!problem) return false;
  auto tile = choose_wgmma_tile(size_of(e, *problem), e.target, e.configuration);
  if (!tile) return false;
  rearrange_operands(e, *problem);
  divide_image(e, *problem, tile->m);
  emit_wgmma(e, *problem, *tile);
  return true;
}

}  // namespace

bool has_wgmma(const kernel_emitter& e) {
  return e.target.gpu.tensor_copy && e.target.gpu.matrix == matrix_unit::wgmma;
}

bool try_wgmma_dot(kernel_emitter& e, const joined_product* joined) {
  return has_wgmma(e) && try_problem(e, find_dot_problem(e, joined));
}

bool try_wgmma_convolution(kernel_emitter& e) { return has_wgmma(e) && try_problem(e, find_convolution_problem(e)); }

std::vector<candidate> wgmma_space(kernel_emitter& e) {
  if (!has_wgmma(e) || !e.anchor()) return {};
  std::optional<wgmma_problem> problem;
  if (e.anchor()->op().is<dot>()) problem = find_dot_problem(e);
  else if (e.anchor()->op().is<convolution>()) problem = find_convolution_problem(e);
  return problem ? wgmma_configurations(size_of(e, *problem), e.target) : std::vector<candidate>();
}

}  // namespace kiln::gpu
