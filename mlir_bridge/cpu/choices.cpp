#include "mlir_bridge/cpu/choices.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::cpu {

std::vector<candidate> grain_choices(kernel_emitter& e) {
  const auto standard = static_cast<double>(e.code.on.item_operations);
  std::vector<candidate> result;
  for (std::int64_t grain : {1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20})
    result.push_back({{{"grain", grain}}, std::abs(std::log2(static_cast<double>(grain) / standard))});
  return result;
}

std::int64_t rows_abreast(const kernel_emitter& e, std::int64_t standard) {
  return std::clamp<std::int64_t>(choose(e.configuration, "abreast", standard), 1, 16);
}

std::vector<candidate> row_choices(kernel_emitter& e) {
  const auto standard = static_cast<double>(e.code.on.item_operations);
  std::vector<candidate> result;
  for (std::int64_t abreast : {1, 2, 4, 8})
    for (std::int64_t grain : {1 << 12, 1 << 14, 1 << 16, 1 << 18})
      result.push_back({{{"abreast", abreast}, {"grain", grain}},
                        std::abs(std::log2(static_cast<double>(abreast) / 4)) +
                            std::abs(std::log2(static_cast<double>(grain) / standard))});
  return result;
}

}  // namespace kiln::cpu
