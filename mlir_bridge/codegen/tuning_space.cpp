#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::codegen {

std::vector<kernel_configuration> combinations(std::span<const choice> choices) {
  std::vector<kernel_configuration> result{{}};
  for (const choice& c : choices) {
    std::vector<kernel_configuration> longer;
    for (const kernel_configuration& so_far : result)
      for (std::int64_t value : c.values) {
        longer.push_back(so_far);
        longer.back()[c.name] = value;
      }
    result = std::move(longer);
  }
  return result;
}

}  // namespace kiln::codegen
