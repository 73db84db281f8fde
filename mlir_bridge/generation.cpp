#include "mlir_bridge/generation.hpp"

#include <algorithm>
#include <iterator>

#include "ir/error.hpp"
#include "mlir_bridge/codegen/empty_tensors.hpp"
#include "mlir_bridge/codegen/open_checks.hpp"
#include "mlir_bridge/codegen/open_origin.hpp"
#include "mlir_bridge/cpu/host_codegen_target.hpp"
#include "mlir_bridge/gpu/gpu_codegen_target.hpp"
#include "mlir_bridge/kernel/origin_attributes.hpp"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"

namespace kiln {
namespace {

// Returns true if byte offsets fit into unsigned 32-bit numbers for every tensor, including offsets that exceed a
// tensor by up to a tile.
// For an open tensor this is assumed, and its size in bytes is added to `bounded`, to be checked at run time.
bool fits_32_bits(const module& fusion, std::vector<dim>& bounded) {
  constexpr std::size_t most = std::size_t{1} << 31;
  for (const instruction& i : fusion.instructions())
    for (const shape& s : i.outputs()) {
      if (s.is_static() && (s.bytes() >= most || s.element_count() >= static_cast<std::int64_t>(most))) return false;
      if (s.is_static()) continue;
      dim size = std::max(1, storage_bits(s.type) / 8);
      for (const dim& d : s.dims) size = size * d;
      if (std::ranges::find(bounded, size) == bounded.end()) bounded.push_back(size);
    }
  return true;
}

bool is_open(const module& fusion) {
  for (const instruction& i : fusion.instructions())
    if (!std::ranges::all_of(i.outputs(), &shape::is_static)) return true;
  return false;
}

kernel_configuration with_origin(kernel_configuration configuration, dialect::KernelOp kernel) {
  const auto rows = kernel->getAttrOfType<mlir::IntegerAttr>(fewest_rows_attribute),
             inputs = kernel->getAttrOfType<mlir::IntegerAttr>(static_inputs_attribute);
  if (rows && inputs) codegen::add_origin(configuration, {rows.getInt(), static_cast<std::uint64_t>(inputs.getInt())});
  return configuration;
}

}  // namespace

void generation::emit() const {
  generator.emit(*emitter);
  emitter->pack_outputs();
}

generation begin_generation(const portable_kernel& kernel, const target_row& target,
                            const kernel_configuration& configuration) {
  mlir::MLIRContext& context = kernel.impl().context->context;
  generation g{to_fusion(kernel),
               mlir::ModuleOp::create(mlir::UnknownLoc::get(&context)),
               with_origin(configuration, kernel.impl().kernel()),
               {},
               nullptr};
  codegen::replace_empty_operands(*g.fusion);
  const auto [anchor, inner] = find_anchors(*g.fusion, kernel.symbol());
  const kernel_kind& kind = *find_kind(anchor ? anchor->op().name() : "");
  const bool cpu = target.family == target_family::cpu;
  g.generator = cpu ? kind.cpu : kind.gpu;
  const bool open = is_open(*g.fusion);
  if (std::string missing; open) {
    if (!has_open_form(*g.fusion, cpu ? processor::cpu : processor::gpu, &missing))
      throw error(error_kind::unsupported, "target '" + target.name + "' has no kernel for all sizes of '" + missing +
                                               "': bind its dimensions to values");
    g.generator.emit = g.generator.emit_open;
  }
  if (!g.generator.emit)
    throw error(error_kind::unsupported,
                "target '" + target.name + "' has no generator for '" + std::string(kind.operation) + "'");
  const bool narrow = !cpu && fits_32_bits(*g.fusion, g.bounded_sizes);
  if (!narrow) g.bounded_sizes.clear();
  if (open) std::ranges::move(codegen::open_checks(*g.fusion), std::back_inserter(g.bounded_sizes));
  const codegen::codegen_target& on =
      cpu ? cpu::host_codegen_target(target) : gpu::gpu_codegen_target(target.family, narrow ? 32 : 64);
  g.emitter = std::make_unique<codegen::kernel_emitter>(*g.fusion, anchor, kernel.symbol(), target, g.configuration, on,
                                                        *g.code);
  std::vector<codegen::inner_anchor> emitted;
  for (const instruction* each : inner) {
    const kernel_kind& of_inner = *find_kind(each->op().name());
    const kernel_generator& generator = cpu ? of_inner.cpu : of_inner.gpu;
    if (auto* emit = open ? generator.emit_open : generator.emit) emitted.push_back({each, emit});
    else
      throw error(error_kind::unsupported, "target '" + target.name + "' has no generator for '" +
                                               std::string(of_inner.operation) + "' in a kernel");
  }
  g.emitter->set_inner_anchors(std::move(emitted));
  if (!g.generator.takes_inner) g.emitter->emit_inner_anchors();
  return g;
}

}  // namespace kiln
