#include "mlir_bridge/kinds/convolution/cpu/image.hpp"

#include <algorithm>
#include <numeric>

#include "mlir_bridge/codegen/channel_view.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::cpu {

namespace {

// Each range of rows needs a copy of the inner loop.
constexpr std::size_t most_row_ranges = 4;
// Shorter inner loops are joined over the taps of a row, which requires an image without borders.
constexpr std::int64_t short_loop = 12;

}  // namespace

contraction_axis convolution_axis(std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
                                  std::int64_t dilation, std::int64_t pad_begin) {
  return {.in = in,
          .stride = stride,
          .tap_stride = dilation,
          .window = window,
          .phases = {{.outputs = out, .first = -pad_begin, .taps = window}}};
}

// Output o takes input i through window position w if o = i * stride + w * dilation - pad_begin. The outputs o = phase
// + t * stride use every step-th w, starting with the first one for which the division is exact; step = stride /
// gcd(stride, dilation). Each next w reads the input dilation / gcd lower. Taps are numbered by ascending input
// position.
contraction_axis transposed_axis(std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
                                 std::int64_t dilation, std::int64_t pad_begin) {
  const std::int64_t common = std::gcd(stride, dilation), step = stride / common;
  contraction_axis axis{.in = in, .stride = 1, .tap_stride = dilation / common, .window = window};
  for (std::int64_t phase = 0; phase < stride; ++phase) {
    axis_phase p{.outputs = std::max<std::int64_t>(0, (out - phase + stride - 1) / stride), .taps = 0};
    for (std::int64_t w = 0; w < window; ++w) {
      const std::int64_t scaled = phase + pad_begin - w * dilation;
      if (scaled % stride != 0) continue;
      ++p.taps;
      // Input position of the last w found, the lowest one.
      p.first = scaled / stride;
      p.window_first = w;
      p.window_step = -step;
    }
    axis.phases.push_back(p);
  }
  return axis;
}

buffer copy_with_border(kernel_emitter& e, value image, std::int64_t before, std::int64_t after, element_type type,
                        const channel_room& room) {
  code_builder& code = e.code;
  const std::vector<std::int64_t> dims = e.dims(image);
  std::vector<std::int64_t> padded = dims;
  const std::size_t axis = dims.size() - 2;
  const bool spread = room.room != room.channels;
  const std::int64_t width = dims[axis], channels = room.groups * room.room;
  padded[axis] += before + after;
  padded.back() = channels;
  const bool prepare = e.only_parameters(image);
  const buffer copy = e.add_scratch(type, padded, prepare);
  const std::int64_t lanes = e.lanes_for(type, width * channels);
  // If nothing is computed on the way, a line of pixels is contiguous in memory.
  const std::optional<buffer> source = spread ? std::nullopt : e.in_memory(image);
  std::vector<std::int64_t> lines(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis));
  e.parallel(
      "border", lines, padded[axis] * channels / 8,
      [&](std::span<const Value> line) {
        Value to = e.pointer(copy);
        Value start = code.mul(code.linearize(line, lines), padded[axis] * channels);
        Value zero = code.number(code.scalar_type(type), 0);
        auto convert = [&](Value v) {
          mlir::Type target = code.type(type, code_builder::lanes_of(v));
          return v.getType() == target ? v : Value(code.make<mlir::arith::ExtFOp>(target, v));
        };
        code.loop(0, before * channels, 1, [&](Value i) { code.store(to, code.add(start, i), type, zero); });
        Value inner = code.add(start, before * channels);
        if (source) {
          Value from = e.pointer(*source);
          Value read = code.mul(code.linearize(line, lines), width * channels);
          const std::int64_t even = width * channels / lanes * lanes;
          auto move = [&](Value i, std::int64_t count) {
            code.store(to, code.add(inner, i), type, convert(code.load(from, code.add(read, i), source->type, count)));
          };
          code.loop(0, even, lanes, [&](Value i) { move(i, lanes); });
          code.loop(even, width * channels, 1, [&](Value i) { move(i, 1); });
        } else {
          code.loop(0, width, 1, [&](Value x) {
            values at(line.begin(), line.end());
            at.push_back(x);
            const std::int64_t most = room.channels * (spread ? 1 : room.groups), some = e.lanes_for(type, most),
                               even = most / some * some;
            auto group = [&](Value first_read, Value first_written) {
              auto move = [&](Value channel, std::int64_t count) {
                values where = at;
                where.push_back(code.add(first_read, channel));
                evaluator ev(e);
                code.store(to, code.add(code.add(inner, code.mul(x, channels)), code.add(first_written, channel)), type,
                           convert(ev.element(image, where, count)));
              };
              code.loop(0, even, some, [&](Value channel) { move(channel, some); });
              code.loop(even, most, 1, [&](Value channel) { move(channel, 1); });
            };
            if (!spread) return group(code.constant(0), code.constant(0));
            code.loop(0, room.groups, 1, [&](Value g) {
              Value first = code.mul(g, room.room);
              group(code.mul(g, room.channels), first);
              code.loop(room.channels, room.room, 1, [&](Value channel) {
                code.store(to, code.add(code.add(inner, code.mul(x, channels)), code.add(first, channel)), type, zero);
              });
            });
          });
        }
        code.loop(0, after * channels, 1,
                  [&](Value i) { code.store(to, code.add(code.add(inner, width * channels), i), type, zero); });
      },
      prepare);
  return copy;
}

void set_image(kernel_emitter& e, contraction& c, value image) {
  const std::vector<std::int64_t> dims = e.dims(image);
  contraction_axis& last = c.axes.back();
  const element_type stored = image.type().type;
  const bool widened = (stored == element_type::f16 || stored == element_type::bf16) && !c.by_lane;
  const element_type wanted = widened ? element_type::f32 : stored;
  const bool border =
      last.clipped() && (c.matrix || row_ranges(last, c.rows).size() > most_row_ranges || c.steps < short_loop);
  std::int64_t before = 0, after = 0;
  if (border) {
    for (const axis_phase& phase : last.phases) {
      if (phase.outputs == 0 || phase.taps == 0) continue;
      before = std::max(before, -phase.first);
      after = std::max(
          after, phase.first + (phase.outputs - 1) * last.stride + (phase.taps - 1) * last.tap_stride - last.in + 1);
    }
    for (axis_phase& phase : last.phases) phase.first += before;
    last.in += before + after;
  }
  c.left_step = neighbours_of(c.by_lane);
  const channel_room room{.groups = c.groups, .channels = dims.back() / c.groups, .room = c.steps * c.left_step};
  const bool copied = border || stored != wanted || room.room != room.channels;
  const channel_view left =
      copied ? channel_view{copy_with_border(e, image, before, after, wanted, room)} : materialize_channels(e, image);
  c.left = left.memory;
  c.left_first = left.first;
  std::int64_t pitch = left.pitch();
  for (std::size_t i = c.axes.size(); i-- > 0;) {
    c.axes[i].pitch = pitch;
    pitch *= c.axes[i].in;
  }
  c.left_batch = pitch;
  c.left_group = room.room;
}

}  // namespace kiln::cpu
