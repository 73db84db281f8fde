#include "mlir_bridge/gpu/window.hpp"

#include <algorithm>
#include <numeric>

#include "mlir_bridge/gpu/map.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t most_written_out = 50;     // window positions
constexpr std::int64_t most_pixels = 4;           // of one thread
constexpr std::int64_t resident_threads = 2048;   // of one compute unit

Value both(code_builder& code, Value a, Value b) { return !a ? b : !b ? a : code.make<mlir::arith::AndIOp>(a, b).getResult(); }

}  // namespace

window_stage::window_stage(kernel_emitter& e, value image, value result, geometry shape, std::int64_t lanes)
    : e_(e), code_(e.code), shape_(std::move(shape)), in_(kernel_emitter::dims(image)), out_(kernel_emitter::dims(result)), lanes_(lanes) {
  std::int64_t taps = std::accumulate(shape_.window.begin(), shape_.window.end(), std::int64_t{1}, std::multiplies<>());
  written_out_ = taps <= most_written_out;
  std::int64_t vectors = std::accumulate(out_.begin(), out_.end(), std::int64_t{1}, std::multiplies<>()) / lanes_;
  std::int64_t width = out_[out_.size() - 2];
  while (written_out_ && pixels_ < most_pixels && pixels_ < width && vectors / (2 * pixels_) >= resident_threads * e.target.gpu.compute_units) pixels_ *= 2;
  items_ = vectors / width * ((width + pixels_ - 1) / pixels_);
  threads_ = spread_threads(e.target, items_);
}

void window_stage::open(const std::string& name) {
  group_.emplace(e_, name, std::array<std::int64_t, 3>{(items_ + threads_ - 1) / threads_, 1, 1}, threads_);
  Value item = code_.add(code_.mul(group_->block(), threads_), group_->thread());
  if (items_ % threads_) {
    fresh_ = code_.less(item, code_.constant(items_));
    item = code_.min(item, items_ - 1);
  }
  std::vector<std::int64_t> dims = out_;
  dims.back() /= lanes_;
  dims[dims.size() - 2] = (dims[dims.size() - 2] + pixels_ - 1) / pixels_;
  values digits = code_.delinearize(item, dims);
  batch_ = digits[0];
  channel_ = code_.mul(digits.back(), lanes_);
  output_.assign(digits.begin() + 1, digits.end() - 1);
  output_.back() = code_.mul(output_.back(), pixels_);
}

bool window_stage::may_leave(std::size_t axis) const {
  std::int64_t last = (out_[axis + 1] - 1) * shape_.strides[axis] - shape_.pads_begin[axis] + (shape_.window[axis] - 1) * shape_.dilations[axis];
  bool past_the_end = axis + 1 == shape_.window.size() && out_[axis + 1] % pixels_ != 0;
  return shape_.pads_begin[axis] > 0 || last >= in_[axis + 1] || past_the_end;
}

Value window_stage::start(std::size_t axis, std::size_t pixel) const {
  std::int64_t shift = axis + 1 == shape_.window.size() ? static_cast<std::int64_t>(pixel) * shape_.strides[axis] : 0;
  return code_.add(code_.mul(output_[axis], shape_.strides[axis]), shift - shape_.pads_begin[axis]);
}

std::pair<axis_index, Value> window_stage::locate(std::size_t axis, Value tap, std::size_t pixel) const {
  std::int64_t shift = axis + 1 == shape_.window.size() ? static_cast<std::int64_t>(pixel) * shape_.strides[axis] : 0, extent = in_[axis + 1];
  shift -= shape_.pads_begin[axis];
  // One sum for each distance, so that pixels and window positions that meet share it.
  if (auto known = code_builder::known(tap)) shift += *known * shape_.dilations[axis];
  Value i = code_.add(code_.mul(output_[axis], shape_.strides[axis]), shift);
  if (!code_builder::known(tap)) i = code_.add(i, code_.mul(tap, shape_.dilations[axis]));
  Value inside;
  if (may_leave(axis)) {
    inside = code_.make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult, i, code_.constant(extent));
    i = code_.min(code_.max(i, 0), extent - 1);
  }
  return {{i, 0, {}, 0, extent, 1}, inside};
}

values window_stage::axes(std::size_t axis, std::vector<Value> taps, values state, const std::function<values(const std::vector<Value>&, values)>& body) const {
  if (axis == shape_.window.size()) return body(taps, std::move(state));
  auto one = [&](Value tap, values s) {
    auto deeper = taps;
    deeper.push_back(tap);
    return axes(axis + 1, deeper, std::move(s), body);
  };
  if (written_out_) {
    for (std::int64_t t = 0; t < shape_.window[axis]; ++t) state = one(code_.constant(t), std::move(state));
    return state;
  }
  return code_.loop(0, shape_.window[axis], 1, std::move(state), [&](Value tap, std::span<const Value> s) { return one(tap, values(s.begin(), s.end())); });
}

values window_stage::walk(values state, const std::function<values(evaluator&, const tap&, values)>& visit) const {
  evaluator shared(e_);
  return axes(0, {}, std::move(state), [&](const std::vector<Value>& taps, values s) {
    evaluator own(e_);
    evaluator& ev = written_out_ ? shared : own;
    for (std::size_t pixel = 0; pixel < pixels(); ++pixel) {
      tap t{pixel, {{batch_, 0, {}, 0, in_[0], 1}}, {}, taps};
      for (std::size_t axis = 0; axis < taps.size(); ++axis) {
        auto [index, inside] = locate(axis, taps[axis], pixel);
        t.where.push_back(index);
        t.inside = both(code_, t.inside, inside);
      }
      t.where.push_back({channel_, lanes_ > 1 ? 1 : 0, {}, 0, out_.back(), lanes_});
      s = visit(ev, t, std::move(s));
    }
    return s;
  });
}

Value window_stage::count(std::size_t pixel, const std::vector<std::int64_t>* end) const {
  Value counted = code_.constant(1);
  for (std::size_t axis = 0; axis < shape_.window.size(); ++axis) {
    std::int64_t dilation = shape_.dilations[axis], extent = in_[axis + 1];
    Value first = start(axis, pixel);
    auto elements_below = [&](std::int64_t limit) {  // of the window, at coordinates below limit
      return code_.min(code_.div(code_.max(code_.sub(code_.constant(limit + dilation - 1), first), 0), dilation), shape_.window[axis]);
    };
    Value inside = end ? elements_below(extent + (*end)[axis]) : code_.max(code_.sub(elements_below(extent), elements_below(0)), 0);
    counted = code_.mul(counted, may_leave(axis) ? inside : code_.constant(shape_.window[axis]));
  }
  return counted;
}

void window_stage::store(std::span<const Value> results) const {
  for (std::size_t pixel = 0; pixel < pixels(); ++pixel) {
    Value column = code_.add(output_.back(), static_cast<std::int64_t>(pixel)), owner = fresh_;
    std::int64_t width = out_[out_.size() - 2];
    if (width % pixels_ && pixel) owner = both(code_, owner, code_.less(column, code_.constant(width)));
    auto write = [&] {
      position where{{batch_, 0, {}, 0, out_[0], 1}};
      for (std::size_t axis = 0; axis < output_.size(); ++axis) where.push_back({axis + 1 == output_.size() ? column : output_[axis], 0, {}, 0, out_[axis + 1], 1});
      where.push_back({channel_, lanes_ > 1 ? 1 : 0, {}, 0, out_.back(), lanes_});
      evaluator ev(e_);
      ev.bind(e_.anchor_result(), results[pixel]);
      ev.store_outputs(where, lanes_);
    };
    if (owner) code_.when(owner, write);
    else write();
  }
}

}  // namespace kiln::gpu
