#include "aot/passes/channels_last.hpp"

#include <optional>

#include "aot/passes/rewrite.hpp"

namespace kiln {
namespace {

template <class Op>
std::optional<operation> moved(const operation& op) {
  const Op* o = op.get_if<Op>();
  if (!o || o->layout == tensor_layout::channels_last) return std::nullopt;
  Op last = *o;
  last.layout = tensor_layout::channels_last;
  return last;
}

std::optional<operation> moved(const operation& op) {
  if (auto last = moved<convolution>(op)) return last;
  if (auto last = moved<transposed_convolution>(op)) return last;
  return moved<pooling>(op);
}

}  // namespace

bool channels_last::apply(module& m) const {
  bool changed = false;
  for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
    instruction& at = *here;
    auto last = moved(at.op());
    if (!last) continue;
    auto rank = static_cast<std::int64_t>(at.outputs()[0].rank());
    std::vector<std::int64_t> to_last{0}, to_first{0, rank - 1}, window_first;
    for (std::int64_t axis = 2; axis < rank; ++axis)
      to_last.push_back(axis), to_first.push_back(axis - 1), window_first.push_back(axis);
    to_last.push_back(1);
    window_first.insert(window_first.end(), {1, 0});
    rewriter write(m, here);
    std::vector<value> inputs{write.transpose_by(at.inputs()[0], to_last)};
    if (at.inputs().size() > 1) inputs.push_back(write.transpose_by(at.inputs()[1], window_first));
    value made = write.add(*std::move(last), std::move(inputs));
    m.replace(at.output(), write.transpose_by(made, to_first));
    changed = true;
  }
  m.erase_dead();
  return changed;
}

}  // namespace kiln
