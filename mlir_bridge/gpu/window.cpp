#include "mlir_bridge/gpu/window.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/gpu/streaming_cost.hpp"

namespace kiln::gpu {

namespace {

// Largest number of window positions that are unrolled.
constexpr std::int64_t most_written_out = 50;
// Largest number of window positions whose loads may all be in flight.
constexpr std::int64_t most_loads_ahead = 25;
// Pixels per thread.
constexpr std::int64_t most_pixels = 4;
constexpr std::int64_t most_configured_pixels = 8;
// Per compute unit.
constexpr std::int64_t resident_threads = 2048;

Value both(code_builder& code, Value a, Value b) {
  return !a ? b : !b ? a : code.make<mlir::arith::AndIOp>(a, b).getResult();
}

}  // namespace

window_stage::window_stage(kernel_emitter& e, value image, value result, geometry shape, std::int64_t lanes,
                           bool whole_pixels)
    : window_stage(e, e.configuration, image, result, std::move(shape), lanes, whole_pixels) {}

window_stage::window_stage(kernel_emitter& e, const kernel_configuration& configuration, value image, value result,
                           geometry shape, std::int64_t lanes, bool whole_pixels)
    : e_(e),
      code_(e.code),
      shape_(std::move(shape)),
      in_(kernel_emitter::sizes(image)),
      out_(kernel_emitter::sizes(result)),
      lanes_(lanes) {
  std::int64_t taps = std::accumulate(shape_.window.begin(), shape_.window.end(), std::int64_t{1}, std::multiplies<>());
  written_out_ = taps <= most_written_out;
  const dim wide = out_[out_.size() - 2];
  // Number of vectors of channels, counting one pixel per line.
  vectors_ = out_.back().is_static() ? out_.back().value() / lanes_ : 1;
  team_ = whole_pixels ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(vectors_))) : vectors_;
  const dim of_lines = std::accumulate(out_.begin(), out_.end() - 2, whole_pixels ? dim(team_) : out_.back() / lanes_,
                                       std::multiplies<>());
  const std::int64_t width = usual_size(wide), vectors = usual_size(of_lines) * width;
  // Neighbouring pixels read most of their windows together. Measured on an H100 with ConvNeXt's shapes: 0.98 to 0.75
  // of the time of one pixel, but 1.2 with the few channels of its first layers in f16.
  if (whole_pixels && written_out_ && e.target.family == target_family::nvidia)
    pixels_ = std::clamp<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(width / 3)), 1, most_pixels);
  // LLVM's scheduler for AMD moves all loads of several pixels ahead of the sums. With more of them than there are
  // registers, its register allocator takes minutes.
  auto loads = [&](std::int64_t pixels) {
    return taps / shape_.window.back() * (shape_.window.back() + (pixels - 1) * shape_.strides.back());
  };
  const std::int64_t most_loads =
      e.target.family == target_family::amdgpu ? most_loads_ahead : std::numeric_limits<std::int64_t>::max();
  while (written_out_ && pixels_ < most_pixels && pixels_ < width && loads(2 * pixels_) <= most_loads &&
         vectors / (2 * pixels_) >= resident_threads * e.target.gpu.compute_units)
    pixels_ *= 2;
  if (written_out_)
    pixels_ = std::clamp<std::int64_t>(choose(configuration, "pixels", pixels_), 1,
                                       std::max<std::int64_t>(pixels_, std::min(width, most_configured_pixels)));
  // Before gfx906, GCN has no multiply-add that reads f16 and adds f32: each element is converted, and LLVM would
  // convert all of them ahead of the sums.
  const bool converts =
      e.target.family == target_family::amdgpu && e.target.gpu.wave == 64 && e.target.gpu.dots == dot_unit::none;
  by_rows_ = converts && 2 * taps * lanes_ > e.target.gpu.registers;
  items_ = of_lines * ((wide + pixels_ - 1) / pixels_);
  threads_ = configured_threads(e.target, configuration, spread_threads(e.target, usual_size(items_)));
  // Several waves combine their channels in shared memory, which only one item can use.
  if (whole_pixels && team_ > e.target.gpu.wave) threads_ = team_;
}

void window_stage::open(const std::string& name) {
  group_.emplace(e_, name, (items_ + threads_ - 1) / threads_, threads_);
  Value item = code_.add(code_.mul(group_->block(), threads_), group_->thread());
  if (!divides(threads_, items_)) {
    fresh_ = code_.less(item, e_.size(items_));
    item = e_.min(item, items_ - 1);
  }
  std::vector<dim> dims = out_;
  dims.back() = team_ > vectors_ ? dim(team_) : dims.back() / lanes_;
  dims[dims.size() - 2] = (dims[dims.size() - 2] + pixels_ - 1) / pixels_;
  values digits = e_.delinearize(item, dims);
  batch_ = digits[0];
  if (team_ > vectors_) {
    active_ = code_.less(digits.back(), code_.constant(vectors_));
    digits.back() = code_.min(digits.back(), vectors_ - 1);
  }
  channel_ = code_.mul(digits.back(), lanes_);
  output_.assign(digits.begin() + 1, digits.end() - 1);
  output_.back() = code_.mul(output_.back(), pixels_);
}

void window_stage::emit(const std::string& name, const std::function<values()>& results) {
  open(name);
  // If only the stores are conditional, LLVM moves the sums into their branch and leaves all loads before it. That is
  // good for a small window, whose loads are then in flight together. No GPU has registers for those of a large one, so
  // there threads without an item skip the window, too. So they do where rows of the window stay apart.
  const std::int64_t taps =
      std::accumulate(shape_.window.begin(), shape_.window.end(), std::int64_t{1}, std::multiplies<>());
  const bool skips = fresh_ && (by_rows_ || (!items_.is_static() && taps > most_loads_ahead));
  if (skips) code_.when(std::exchange(fresh_, {}), [&] { store(results()); });
  else store(results());
  close();
}

bool window_stage::may_leave(std::size_t axis) const {
  const dim beyond_last = in_[axis + 1] - ((out_[axis + 1] - 1) * shape_.strides[axis] - shape_.pads_begin[axis] +
                                           (shape_.window[axis] - 1) * shape_.dilations[axis]);
  bool past_the_end = axis + 1 == shape_.window.size() && !divides(pixels_, out_[axis + 1]);
  return shape_.pads_begin[axis] > 0 || !beyond_last.is_static() || beyond_last.value() <= 0 || past_the_end;
}

Value window_stage::start(std::size_t axis, std::size_t pixel) const {
  std::int64_t shift = axis + 1 == shape_.window.size() ? static_cast<std::int64_t>(pixel) * shape_.strides[axis] : 0;
  return code_.add(code_.mul(output_[axis], shape_.strides[axis]), shift - shape_.pads_begin[axis]);
}

std::pair<axis_index, Value> window_stage::locate(std::size_t axis, Value tap, std::size_t pixel) const {
  std::int64_t shift = axis + 1 == shape_.window.size() ? static_cast<std::int64_t>(pixel) * shape_.strides[axis] : 0;
  const dim& extent = in_[axis + 1];
  shift -= shape_.pads_begin[axis];
  // Sum constant distances first, so that pixels and window positions with equal distances share the result.
  if (auto known = code_builder::known(tap)) shift += *known * shape_.dilations[axis];
  Value i = code_.add(code_.mul(output_[axis], shape_.strides[axis]), shift);
  if (!code_builder::known(tap)) i = code_.add(i, code_.mul(tap, shape_.dilations[axis]));
  Value inside;
  if (may_leave(axis)) {
    inside = code_.make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult, i, e_.size(extent));
    i = e_.min(code_.max(i, 0), extent - 1);
  }
  return {{i, 0, {}, 0, known_bound(extent), 1}, inside};
}

values window_stage::axes(std::size_t axis, std::vector<Value> taps, values state,
                          const std::function<values(const std::vector<Value>&, values)>& body) const {
  if (axis == shape_.window.size()) return body(taps, std::move(state));
  auto one = [&](Value tap, values s) {
    auto deeper = taps;
    deeper.push_back(tap);
    return axes(axis + 1, deeper, std::move(s), body);
  };
  if (written_out_) {
    for (std::int64_t t = 0; t < shape_.window[axis]; ++t) {
      state = one(code_.constant(t), std::move(state));
      if (by_rows_ && axis + 2 == shape_.window.size()) schedule_barrier(code_, e_.target.family, passing::nothing);
    }
    return state;
  }
  return code_.loop(0, shape_.window[axis], 1, std::move(state),
                    [&](Value tap, std::span<const Value> s) { return one(tap, values(s.begin(), s.end())); });
}

values window_stage::walk(values state, const std::function<values(evaluator&, const tap&, values)>& visit) const {
  evaluator shared(e_);
  return axes(0, {}, std::move(state), [&](const std::vector<Value>& taps, values s) {
    evaluator own(e_);
    evaluator& ev = written_out_ ? shared : own;
    for (std::size_t pixel = 0; pixel < pixels(); ++pixel) {
      tap t{pixel, {{batch_, 0, {}, 0, known_bound(in_[0]), 1}}, {}, taps};
      for (std::size_t axis = 0; axis < taps.size(); ++axis) {
        auto [index, inside] = locate(axis, taps[axis], pixel);
        t.where.push_back(index);
        t.inside = both(code_, t.inside, inside);
      }
      t.where.push_back({channel_, lanes_ > 1 ? 1 : 0, {}, 0, known_bound(out_.back()), lanes_});
      s = visit(ev, t, std::move(s));
    }
    return s;
  });
}

Value window_stage::count(std::size_t pixel, const std::vector<std::int64_t>* end) const {
  Value counted = code_.constant(1);
  for (std::size_t axis = 0; axis < shape_.window.size(); ++axis) {
    std::int64_t dilation = shape_.dilations[axis];
    const dim& extent = in_[axis + 1];
    Value first = start(axis, pixel);
    auto elements_below = [&](const dim& limit) {  // number of window positions with coordinates below `limit`
      return code_.min(code_.div(code_.max(code_.sub(e_.size(limit + dilation - 1), first), 0), dilation),
                       shape_.window[axis]);
    };
    Value inside = end ? elements_below(extent + (*end)[axis])
                       : code_.max(code_.sub(elements_below(extent), elements_below(0)), 0);
    counted = code_.mul(counted, may_leave(axis) ? inside : code_.constant(shape_.window[axis]));
  }
  return counted;
}

position window_stage::place(std::size_t pixel) const {
  Value column = code_.add(output_.back(), static_cast<std::int64_t>(pixel));
  const dim& width = out_[out_.size() - 2];
  if (!divides(pixels_, width) && pixel) column = e_.min(column, width - 1);
  position where{{batch_, 0, {}, 0, known_bound(out_[0]), 1}};
  for (std::size_t axis = 0; axis < output_.size(); ++axis)
    where.push_back({axis + 1 == output_.size() ? column : output_[axis], 0, {}, 0, known_bound(out_[axis + 1]), 1});
  where.push_back({channel_, lanes_ > 1 ? 1 : 0, {}, 0, known_bound(out_.back()), lanes_});
  return where;
}

values window_stage::total(values of_channels) {
  auto add = [&](std::span<const Value> a, std::span<const Value> b) {
    values sums;
    for (std::size_t i = 0; i < a.size(); ++i) sums.push_back(code_.make<mlir::arith::AddFOp>(a[i], b[i]));
    return sums;
  };
  for (Value& v : of_channels) {
    if (active_) v = code_.select(active_, v, code_.number(v.getType(), 0));
    // Add the lanes of a vector in pairs, until one is left.
    for (std::int64_t n = lanes_; n > 1; n /= 2) {
      values low, high;
      for (std::int64_t i = 0; i < n / 2; ++i)
        low.push_back(code_.lane(v, i)), high.push_back(code_.lane(v, i + n / 2));
      v = code_.make<mlir::arith::AddFOp>(code_.from_lanes(low), code_.from_lanes(high));
    }
  }
  if (team_ == 1) return of_channels;
  return team_ <= group_->wave_size() ? group_->reduce_wave(std::move(of_channels), add, team_)
                                      : group_->reduce(std::move(of_channels), add);
}

void window_stage::store(std::span<const Value> results) const {
  for (std::size_t pixel = 0; pixel < pixels(); ++pixel) {
    Value column = code_.add(output_.back(), static_cast<std::int64_t>(pixel)), owner = both(code_, fresh_, active_);
    const dim& width = out_[out_.size() - 2];
    if (!divides(pixels_, width) && pixel) owner = both(code_, owner, code_.less(column, e_.size(width)));
    auto write = [&] {
      position where{{batch_, 0, {}, 0, known_bound(out_[0]), 1}};
      for (std::size_t axis = 0; axis < output_.size(); ++axis)
        where.push_back(
            {axis + 1 == output_.size() ? column : output_[axis], 0, {}, 0, known_bound(out_[axis + 1]), 1});
      where.push_back({channel_, lanes_ > 1 ? 1 : 0, {}, 0, known_bound(out_.back()), lanes_});
      evaluator ev(e_);
      ev.bind(e_.anchor_result(), results[pixel]);
      ev.store_outputs(where, lanes_);
    };
    if (owner) code_.when(owner, write);
    else write();
  }
}

double window_stage::cost() const {
  // Windows of neighbouring pixels overlap. Along the last axis, a thread loads the shared elements once; along other
  // axes, a cache serves them.
  const std::int64_t taps = std::accumulate(shape_.window.begin(), shape_.window.end(), std::int64_t{1},
                                            std::multiplies<>()),
                     line = shape_.window.back();
  const std::int64_t loads = taps / line * (line + (pixels_ - 1) * shape_.strides.back());
  constexpr double element_bytes = 2, of_load = 2;
  streaming_work work{
      .groups = (usual_size(items_) + threads_ - 1) / threads_, .threads = threads_, .access_bytes = lanes_ * 2};
  work.bytes = static_cast<double>(pixels_ * lanes_) * 2 * element_bytes;
  work.trips = written_out_ ? 1 : static_cast<double>(taps);
  work.cycles = static_cast<double>(loads * threads_) * of_load / 4 +
                static_cast<double>(pixels_ * taps * lanes_ * threads_) / 128;
  return streaming_cycles(e_.target.gpu, work);
}

std::int64_t window_lanes(const kernel_emitter& e, std::int64_t most, std::int64_t extent, bool whole_pixels) {
  // Measured on an H100: the threads of a pixel hide each other's loads.
  constexpr std::int64_t of_whole = 2;
  const bool few = whole_pixels && e.target.family == target_family::nvidia;
  return common_power(std::clamp<std::int64_t>(choose(e.configuration, "lanes", few ? of_whole : most), 1, most),
                      {extent});
}

std::vector<candidate> window_space(kernel_emitter& e, value image, const window_stage::geometry& shape,
                                    std::int64_t most, std::int64_t extent, bool whole_pixels) {
  std::vector<candidate> result;
  for (std::int64_t lanes = common_power(most, {extent}); lanes >= 1; lanes /= 2)
    for (std::int64_t pixels : {1, 2, 4, 8})
      for (std::int64_t threads : {64, 128, 256}) {
        kernel_configuration configuration{{"lanes", lanes}, {"pixels", pixels}, {"threads", threads}};
        window_stage stage(e, configuration, image, e.anchor_result(), shape, lanes, whole_pixels);
        if (stage.pixels() == static_cast<std::size_t>(pixels))
          result.push_back({std::move(configuration), stage.cost()});
      }
  return result;
}

}  // namespace kiln::gpu
