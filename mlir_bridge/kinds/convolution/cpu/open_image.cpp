#include "mlir_bridge/kinds/convolution/cpu/open_image.hpp"

#include <functional>
#include <numeric>

#include "mlir_bridge/cpu/contraction/open_panels.hpp"

namespace kiln::cpu {

std::vector<values> pixel_positions(kernel_emitter& e, Value first, const values& indices, std::int64_t count,
                                    std::span<const dim> sizes) {
  code_builder& code = e.code;
  const dim pixels = std::accumulate(sizes.begin(), sizes.end(), dim(1), std::multiplies<>());
  std::vector<values> result{indices};
  const Value last_pixel = e.size(pixels - 1);
  for (std::int64_t i = 1; i < count; ++i) {
    values next = result.back();
    Value carry = code.select(code.less(code.add(first, i - 1), last_pixel), code.constant(1), code.constant(0));
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      const Value moved = code.add(next[axis], carry);
      if (axis == 0) {
        next[axis] = moved;
        break;
      }
      const Value wraps = code.equal(moved, e.size(sizes[axis]));
      next[axis] = code.select(wraps, code.constant(0), moved);
      carry = code.select(wraps, code.constant(1), code.constant(0));
    }
    result.push_back(std::move(next));
  }
  return result;
}

position_list::position_list(kernel_emitter& e, std::int64_t count, std::size_t axes)
    : e_(e), axes_(axes), memory_(e.code.stack(e.code.index_element(), count * static_cast<std::int64_t>(axes))) {}

void position_list::set(std::span<const values> positions) const {
  std::int64_t place = 0;
  for (const values& position : positions)
    for (Value index : position) e_.code.store(memory_, e_.code.constant(place++), e_.code.index_element(), index);
}

values position_list::at(Value pixel) const {
  code_builder& code = e_.code;
  values result;
  const Value first = code.mul(pixel, static_cast<std::int64_t>(axes_));
  for (std::size_t axis = 0; axis < axes_; ++axis)
    result.push_back(code.load(memory_, code.add(first, static_cast<std::int64_t>(axis)), code.index_element(), 1));
  return result;
}

pixel_reader::pixel_reader(kernel_emitter& e, const channel_view& image, std::vector<dim> sizes, std::int64_t channels,
                           bool may_miss)
    : e_(e), image_(image), sizes_(std::move(sizes)), channels_(channels), may_miss_(may_miss) {}

pixel_reader::origin pixel_reader::from(Value batch, values place, Value first_channel) const {
  values at{batch};
  at.insert(at.end(), place.begin(), place.end());
  at.push_back(e_.code.add(first_channel, image_.first));
  return {std::move(place), offset_in(e_, image_.memory, at)};
}

pixel_reader::step pixel_reader::by(values distance) const {
  const auto strides = image_.memory.strides();
  Value offset = e_.code.constant(0);
  for (std::size_t i = 0; i < distance.size(); ++i) offset = e_.code.add(offset, e_.mul(distance[i], strides[1 + i]));
  return {std::move(distance), offset};
}

Value pixel_reader::address(const origin& from, const step& by) const {
  code_builder& code = e_.code;
  const element_type type = image_.memory.type;
  const Value address = code.address(e_.pointer(image_.memory), code.add(from.offset, by.offset), type);
  if (!may_miss_) return address;
  Value inside;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    // One unsigned comparison covers both ends.
    const Value here = code.make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult,
                                                      code.add(from.place[i], by.distance[i]), e_.size(sizes_[i]))
                           .getResult();
    inside = inside ? code.make<mlir::arith::AndIOp>(inside, here).getResult() : here;
  }
  const Value zeros = e_.table(type, std::vector<double>(static_cast<std::size_t>(channels_), 0.0));
  return code.select(inside, address, zeros);
}

}  // namespace kiln::cpu
