#include "mlir_bridge/gpu/aligned_sizes.hpp"

#include <algorithm>
#include <utility>

namespace kiln::gpu {

void emit_with_aligned_sizes(kernel_emitter& e, std::int64_t elements, const std::vector<dim>& sizes, const dim& among,
                             const std::function<void()>& emit) {
  std::vector<std::pair<dim, std::int64_t>> multiples;
  dim aligned = among;
  for (const dim& size : sizes) {
    const bool known = std::ranges::any_of(multiples, [&](const auto& m) { return m.first == size; });
    if (known || size.is_static() || e.factor(size) % elements == 0) continue;
    multiples.emplace_back(size, elements);
    aligned = aligned * (1 - dim::min(1, size - size / elements * elements));
  }
  if (multiples.empty() || aligned == 0) return emit();
  const auto held = e.held();
  const dim used = e.used;
  e.used = used * aligned;
  std::swap(e.multiples, multiples);
  emit();
  std::swap(e.multiples, multiples);
  // What the stages of these sizes have stored is missing at the others.
  e.set_held(held);
  e.used = used * (1 - aligned);
  emit();
  e.set_held(held);
  e.used = used;
}

}  // namespace kiln::gpu
