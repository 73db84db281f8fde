#include "mlir_bridge/codegen/alike_operands.hpp"

#include "ir/ops/all.hpp"

namespace kiln::codegen {

namespace {

// Fewer operands are not worth a loop.
constexpr std::size_t least_pieces = 4;

// Returns the concat that alone divides the last axis at these positions, or null.
const instruction* dividing_concat(const kernel_emitter& e, const std::vector<std::int64_t>& bounds) {
  const instruction* found = nullptr;
  for (const instruction& i : e.fusion.instructions()) {
    const auto* op = i.op().get_if<concat>();
    if (!op || op->axis + 1 != static_cast<std::int64_t>(i.outputs()[0].rank())) continue;
    if (found) return nullptr;
    found = &i;
  }
  if (!found || found->inputs().size() + 1 != bounds.size()) return nullptr;
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < found->inputs().size(); ++k) {
    const dim& size = kernel_emitter::sizes(found->inputs()[k]).back();
    if (!size.is_static() || begin != bounds[k]) return nullptr;
    begin += size.value();
  }
  return begin == bounds.back() ? found : nullptr;
}

}  // namespace

std::vector<buffer> alike_operands(const kernel_emitter& e, const instruction& node, std::size_t first,
                                   std::size_t last) {
  std::vector<buffer> found;
  for (std::size_t i = first; i < last; ++i) {
    const std::optional<buffer> b = e.in_memory(node.inputs()[i]);
    if (!b || (!found.empty() && (b->type != found[0].type || b->sizes != found[0].sizes))) return {};
    found.push_back(*b);
  }
  return found;
}

std::vector<axis_segment> divide_axis(const kernel_emitter& e, std::int64_t extent,
                                      const std::vector<std::int64_t>& cuts,
                                      const std::function<bool(std::int64_t extent)>& suits) {
  std::vector<std::int64_t> bounds{0};
  bounds.insert(bounds.end(), cuts.begin(), cuts.end());
  bounds.push_back(extent);
  const instruction* node = dividing_concat(e, bounds);
  std::vector<axis_segment> segments;
  for (std::size_t i = 0, next = 0; i + 1 < bounds.size(); i = next) {
    next = i + 1;
    while (node && next + 1 < bounds.size() && !alike_operands(e, *node, i, next + 1).empty()) ++next;
    const bool join = next - i >= least_pieces && suits(bounds[i + 1] - bounds[i]);
    if (!join) next = i + 1;
    segments.push_back({bounds[i], bounds[next], static_cast<std::int64_t>(next - i)});
  }
  return segments;
}

}  // namespace kiln::codegen
