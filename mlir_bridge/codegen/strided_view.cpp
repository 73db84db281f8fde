#include "mlir_bridge/codegen/strided_view.hpp"

#include "ir/ops/movement.hpp"

namespace kiln::codegen {

std::optional<std::vector<std::int64_t>> extents_but_first(value v) {
  std::vector<std::int64_t> result;
  for (const dim& size : kernel_emitter::sizes(v)) {
    if (!size.is_static() && !result.empty()) return std::nullopt;
    result.push_back(size.is_static() ? size.value() : 2);
  }
  return result;
}

std::optional<strided_view> find_strided_view(const kernel_emitter& e, value v) {
  const auto extents = extents_but_first(v);
  if (!extents) return std::nullopt;
  const std::vector<std::int64_t>& dims = *extents;
  if (auto memory = e.in_memory(v)) {
    strided_view dense{*memory, 0, row_major_strides(dims)};
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == 1) dense.strides[i] = 0;
    return dense;
  }
  const operation& op = v.producer->op();
  const auto* s = op.get_if<slice>();
  if (!s && !op.is<reshape>()) return std::nullopt;
  const value x = v.producer->inputs()[0];
  auto view = find_strided_view(e, x);
  if (!view) return std::nullopt;
  std::vector<std::int64_t> strides(dims.size(), 0);
  if (s) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      view->offset += s->starts[i] * view->strides[i];
      if (dims[i] > 1) strides[i] = view->strides[i] * s->steps[i];
    }
  } else {
    const std::vector<std::int64_t> from = *extents_but_first(x);
    std::size_t i = 0;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] == 1) continue;
      while (i < from.size() && from[i] == 1) ++i;
      if (i == from.size() || from[i] != dims[k]) return std::nullopt;
      strides[k] = view->strides[i++];
    }
    while (i < from.size() && from[i] == 1) ++i;
    if (i != from.size()) return std::nullopt;
  }
  view->strides = std::move(strides);
  return view;
}

}  // namespace kiln::codegen
