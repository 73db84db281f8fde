#include "mlir_bridge/cpu/joined_axes.hpp"

#include <algorithm>
#include <utility>

#include "mlir_bridge/cpu/contraction/open_panels.hpp"

namespace kiln::cpu {

using namespace codegen;

joined_axes::joined_axes(kernel_emitter& e, value input, const std::vector<std::int64_t>& combined)
    : e_(e), input_(input), sizes_(kernel_emitter::sizes(input)), combined_(combined) {
  std::size_t first = sizes_.size();
  while (first > 0 && std::ranges::find(combined, static_cast<std::int64_t>(first - 1)) != combined.end()) --first;
  if (sizes_.size() - first < 2 || storage_bits(input.type().type) < 8) return;
  memory_ = e.in_memory(input);
  if (!memory_) return;
  dim size = 1;
  for (std::size_t axis = first; axis < sizes_.size(); ++axis) size = size * sizes_[axis];
  sizes_.resize(first);
  sizes_.push_back(std::move(size));
  std::erase_if(combined_, [&](std::int64_t axis) { return axis > static_cast<std::int64_t>(first); });
  memory_->sizes = sizes_;
}

Value joined_axes::at(const position& where, std::int64_t lanes) const {
  if (!memory_) {
    evaluator ev(e_);
    return ev.at(input_, where, lanes);
  }
  code_builder& code = e_.code;
  const Value pointer = e_.pointer(*memory_), each = where.back().each;
  values bases;
  for (const axis_index& index : where) bases.push_back(index.base);
  const Value first = offset_in(e_, *memory_, bases);
  if (each) return code.load_gathered(pointer, code.add(each, code.splat(first, lanes)), memory_->type);
  return code.load(pointer, first, memory_->type, lanes);
}

position joined_axes::all_axes(position where) const {
  where.resize(kernel_emitter::sizes(input_).size(), axis_index{e_.code.constant(0), 0, {}, 0, 1, any_multiple});
  return where;
}

}  // namespace kiln::cpu
