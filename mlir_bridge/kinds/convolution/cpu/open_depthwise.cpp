// Depthwise convolutions of images of open sizes, channels last. A work item computes some channels of a part of a line
// of pixels. Lanes are channels; pixels whose windows do not touch the ends of the line share the weights in registers.
#include <algorithm>
#include <vector>

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/channel_view.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/open_panels.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
#include "mlir_bridge/kinds/convolution/cpu/open_depthwise.hpp"

namespace kiln::cpu {

namespace {

// Up to this many taps of a line are unrolled; more are a loop.
constexpr std::int64_t most_unrolled_taps = 7;
constexpr std::int64_t most_vectors = 2;
// Pixels of a work item.
constexpr std::int64_t line_part = 64;

class open_depthwise {
 public:
  explicit open_depthwise(kernel_emitter& emitter)
      : e(emitter),
        code(emitter.code),
        op(*e.anchor()->op().get_if<convolution>()),
        result(e.anchor_result().type()),
        channels(result.dims.back().value()) {
    const value image = e.anchor()->inputs()[0], filter = e.anchor()->inputs()[1];
    const std::vector<dim>&of_image = image.type().dims, &of_filter = filter.type().dims;
    for (std::size_t i = 0; i < op.strides.size(); ++i)
      axes.push_back({of_image[1 + i], result.dims[1 + i], of_filter[i].value(), op.strides[i], op.dilations[i],
                      op.pads_begin[i], op.pads_end[i]});
    source = materialize_channels(e, image);
    weights = e.materialize(filter);
    accumulation = accumulation_type(source.memory.type);
    lanes = register_lanes(e, accumulation);
    vectors = std::clamp<std::int64_t>(channels / lanes, 1, most_vectors);
    // The sums and the weights of a tap are in registers.
    tile_pixels = {e.target.vector_registers >= 32 ? 8 : 4, 3};
  }

  void emit() {
    const std::vector<column_segment> segments = exact_segments({1, vectors, lanes}, channels);
    std::int64_t panels = 0, taps = 1;
    for (const column_segment& segment : segments) panels += segment.count;
    for (const axis& a : axes) taps *= a.taps;
    std::vector<dim> items{result.dims[0]};
    for (const axis& a : axes) items.push_back(a.out);
    items.back() = (items.back() + line_part - 1) / line_part;
    items.push_back(panels);
    e.parallel_open("depthwise", items, line_part * vectors * taps, [&](std::span<const Value> at) {
      batch = at[0];
      outputs.assign(at.begin() + 1, at.end() - 1);
      const Value first = code.mul(outputs.back(), line_part),
                  last = e.min(code.add(first, line_part), axes.back().out);
      for (const column_segment& segment : segments) {
        const auto body = [&] {
          emit_line(
              segment,
              code.add(code.mul(code.sub(at.back(), segment.first_panel), segment.columns()), segment.first_column),
              first, last);
        };
        if (segments.size() == 1) body();
        else code.when(inside(at.back(), segment.first_panel, segment.first_panel + segment.count), body);
      }
    });
  }

 private:
  struct axis {
    dim in, out;
    std::int64_t taps, stride, dilation, pad, pad_end;
    bool padded() const { return pad != 0 || pad_end != 0; }
    // Pixels from the first tap to the last.
    std::int64_t span() const { return (taps - 1) * dilation; }
  };

  Value inside(Value v, std::int64_t low, std::int64_t high) {
    const Value below = code.less(v, code.constant(high));
    return low == 0 ? below : Value(code.make<mlir::arith::AndIOp>(below, code.less(code.constant(low - 1), v)));
  }

  // Computes the channels of a panel, which begins at `column`, for pixels [first, last) of the line.
  void emit_line(const column_segment& segment, Value column, Value first, Value last) {
    const axis& line = axes.back();
    // The windows of the pixels [begin, end) do not touch the ends of the line.
    const Value inner_begin = code.constant((line.pad + line.stride - 1) / line.stride),
                room = code.add(e.size(line.in), line.pad - 1 - line.span() + line.stride),
                inner_end = code.div(code.max(room, 0), line.stride);
    const Value begin = code.min(code.max(first, inner_begin), last), end = code.max(begin, code.min(last, inner_end));
    // How far tiles have come. The last tile of each size may overlap the one before it.
    Value done = begin;
    for (std::int64_t pixels : tile_pixels) {
      const open_tile_store store = store_of(segment, pixels);
      const Value from = done, tiles = code.div(code.sub(end, from), pixels),
                  whole = code.add(from, code.mul(tiles, pixels));
      code.loop(from, whole, pixels, [&](Value x) { emit_tile(segment, store, pixels, x, column, false); });
      const auto reached = code.branch(
          code.less(code.sub(end, begin), code.constant(pixels)), [&] { return values{whole}; },
          [&] {
            code.when(code.less(whole, end),
                      [&] { emit_tile(segment, store, pixels, code.sub(end, pixels), column, false); });
            return values{end};
          });
      done = reached[0];
    }
    const open_tile_store store = store_of(segment, 1);
    const Value before = code.sub(begin, first);
    code.loop(code.constant(0), code.add(before, code.sub(last, done)), 1, [&](Value i) {
      const Value x = code.select(code.less(i, before), code.add(first, i), code.add(done, code.sub(i, before)));
      emit_tile(segment, store, 1, x, column, true);
    });
  }

  open_tile_store store_of(const column_segment& segment, std::int64_t pixels) {
    return {e, {pixels, segment.vectors, segment.lanes}, accumulation};
  }

  void emit_tile(const column_segment& segment, const open_tile_store& store, std::int64_t pixels, Value x,
                 Value column, bool clip) {
    const tile_shape tile{pixels, segment.vectors, segment.lanes};
    outputs.back() = x;
    const Value offset = code.add(code.add(e.mul(batch, source.memory.strides()[0]), source.first), column);
    const values sums = reduce(0, tile, offset, code.constant(0), column, clip, zero_tile(code, tile, accumulation));
    store.write(sums, code.constant(pixels), code.constant(tile.columns()), true,
                [&](Value row, const span_part& part, Value computed) {
                  values at{batch};
                  at.insert(at.end(), outputs.begin(), outputs.end());
                  at.back() = code.add(x, row);
                  at.push_back(code.add(column, part.first));
                  evaluator ev(e);
                  ev.bind(e.anchor_result(), to_result(code, computed, accumulation, result.type));
                  ev.store_outputs(at, part.lanes);
                });
  }

  // Adds the products of the axes from `i` on. `tap` is the number of the taps of the axes in front.
  values reduce(std::size_t i, const tile_shape& tile, Value offset, Value tap, Value column, bool clip, values sums) {
    const axis& a = axes[i];
    const bool last = i + 1 == axes.size();
    const dim stride = source.memory.strides()[1 + i];
    const Value base = code.add(code.mul(outputs[i], a.stride), -a.pad);
    const auto add_tap = [&](Value j, values so_far) {
      const Value at = code.add(offset, e.mul(code.add(base, code.mul(j, a.dilation)), stride)),
                  number = code.add(code.mul(tap, a.taps), j);
      return last ? multiply(tile, at, number, column, std::move(so_far))
                  : reduce(i + 1, tile, at, number, column, clip, std::move(so_far));
    };
    if (last && !clip && a.taps <= most_unrolled_taps) {
      for (std::int64_t j = 0; j < a.taps; ++j) sums = add_tap(code.constant(j), std::move(sums));
      return sums;
    }
    Value low = code.constant(0), high = code.constant(a.taps);
    if (last ? clip : a.padded()) {
      const auto taps_before = [&](Value distance) {
        return code.div(code.add(code.max(distance, 0), a.dilation - 1), a.dilation);
      };
      low = taps_before(code.sub(code.constant(0), base));
      high = code.min(high, taps_before(code.sub(e.size(a.in), base)));
    }
    return code.loop(low, high, 1, std::move(sums), [&](Value j, std::span<const Value> carried) {
      return add_tap(j, values(carried.begin(), carried.end()));
    });
  }

  values multiply(const tile_shape& tile, Value offset, Value tap, Value column, values sums) {
    const std::int64_t pixel = axes.back().stride * source.pitch();
    const element_type stored = source.memory.type;
    const Value from = code.add(code.mul(tap, channels), column), pointer = e.pointer(source.memory);
    for (std::int64_t v = 0; v < tile.vectors; ++v) {
      const std::int64_t moved = v * tile.lanes;
      const Value weight = widen(code, code.load(e.pointer(weights), code.add(from, moved), weights.type, tile.lanes),
                                 weights.type, accumulation);
      for (std::int64_t r = 0; r < tile.rows; ++r) {
        Value& sum = sums[static_cast<std::size_t>(r * tile.vectors + v)];
        const Value x = widen(code, code.load(pointer, code.add(offset, r * pixel + moved), stored, tile.lanes), stored,
                              accumulation);
        sum = is_float(accumulation) ? code.fma(x, weight, sum) : code.add(code.mul(x, weight), sum);
      }
    }
    return sums;
  }

  kernel_emitter& e;
  code_builder& code;
  const convolution& op;
  shape result;
  std::int64_t channels, lanes = 1, vectors = 1;
  std::vector<axis> axes;
  std::vector<std::int64_t> tile_pixels;
  channel_view source;
  buffer weights;
  element_type accumulation;
  // Of the work item: the image, and the pixel that is computed.
  Value batch;
  values outputs;
};

}  // namespace

void emit_open_depthwise(kernel_emitter& e) { open_depthwise(e).emit(); }

}  // namespace kiln::cpu
