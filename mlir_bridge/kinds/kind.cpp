#include "mlir_bridge/kinds/kind.hpp"

#include <string>
#include <vector>

#include "ir/error.hpp"
#include "ir/normalized_window.hpp"
#include "ir/ops/movement.hpp"

namespace kiln {

// folders.inc has a line KILN_KIND(name) for each folder, which defines name_kinds() in its kind.cpp.
namespace kinds {
#define KILN_KIND(folder) std::span<const kernel_kind> folder##_kinds();
#include "mlir_bridge/kinds/folders.inc"
#undef KILN_KIND
}  // namespace kinds

std::span<const kernel_kind> kernel_kinds() {
  static const std::vector<kernel_kind> all = [] {
    std::vector<kernel_kind> rows;
#define KILN_KIND(folder) rows.insert(rows.end(), kinds::folder##_kinds().begin(), kinds::folder##_kinds().end());
#include "mlir_bridge/kinds/folders.inc"
#undef KILN_KIND
    return rows;
  }();
  return all;
}

const kernel_kind* find_kind(std::string_view operation) {
  for (const kernel_kind& kind : kernel_kinds())
    if (kind.operation == operation) return &kind;
  return nullptr;
}

bool has_open_form(const module& fusion, processor on, std::string* missing) {
  auto lacks = [&](std::string_view what) {
    if (missing) *missing = what;
    return false;
  };
  for (const instruction& i : fusion.instructions()) {
    const kernel_kind* kind = find_kind(i.op().name());
    const kernel_generator* generator = !kind ? nullptr : on == processor::cpu ? &kind->cpu : &kind->gpu;
    const bool opens = !generator || (generator->emit_open && (!generator->opens || generator->opens(i)));
    if (!opens) return lacks(i.op().name());
    if (const auto* g = i.op().get_if<gather_nd>(); g && !i.inputs()[1].type().dims.back().is_static())
      return lacks(i.op().name());
  }
  return true;
}

anchors find_anchors(const module& fusion, std::string_view symbol) {
  constexpr std::size_t most_inner = 3;
  anchors found;
  const instruction* window = nullptr;
  for (const instruction& i : fusion.instructions())
    if (const instruction* found = find_normalized_window(i)) window = found;
  for (const instruction& i : fusion.instructions()) {
    if (&i == window || !find_kind(i.op().name())) continue;
    if (found.own) found.inner.push_back(found.own);
    found.own = &i;
  }
  if (found.inner.size() > most_inner)
    throw error(error_kind::internal, "kernel '" + std::string(symbol) + "' has " +
                                          std::to_string(found.inner.size() + 1) + " anchors, " +
                                          std::string(found.own->op().name()) + " the last of them");
  return found;
}

}  // namespace kiln
