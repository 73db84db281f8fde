#include "mlir_bridge/kinds/convolution/cpu/depthwise.hpp"

#include <algorithm>
#include <functional>

#include "ir/normalized_window.hpp"
#include "mlir_bridge/codegen/channel_view.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
#include "mlir_bridge/kinds/convolution/cpu/image.hpp"
#include "mlir_bridge/kinds/convolution/cpu/kept_pixels.hpp"

namespace kiln::cpu {

namespace {

// Up to this many taps of a line are unrolled; more are a loop.
constexpr std::int64_t most_unrolled_taps = 7;
// Maximum numbers of vectors of channels and of pixels in a tile, such that their sums and one row of weights fit into
// registers.
constexpr std::int64_t most_vectors = 2;
// Elements that wait on the stack for the normalization.
constexpr std::int64_t most_kept = 8192;

// Cost model, in multiply-adds of a vector, for one tap: fewer than four sums wait for the latency of earlier ones, and
// each tile loads the weights again.
constexpr std::int64_t least_sums = 4;
std::int64_t tap_cost(std::int64_t pixels, std::int64_t vectors) {
  return std::max(pixels * vectors, least_sums) + vectors;
}

// Returns the pixels per tile, at most `most`, for a line with `inner` pixels that see the whole window. Other pixels
// are computed one by one.
std::int64_t choose_pixels(std::int64_t inner, std::int64_t most, std::int64_t vectors) {
  const auto cost = [&](std::int64_t n) { return inner / n * tap_cost(n, vectors) + inner % n * tap_cost(1, vectors); };
  std::int64_t best = 1;
  for (std::int64_t n = 2; n <= std::min(most, inner); ++n)
    if (cost(n) < cost(best)) best = n;
  return best;
}

class depthwise_emitter {
 public:
  depthwise_emitter(kernel_emitter& emitter, const instruction& window) : e(emitter), code(emitter.code), at(window) {
    const convolution& op = *at.op().get_if<convolution>();
    const value image = at.inputs()[0], weights = at.inputs()[1];
    const std::vector<std::int64_t> in = e.dims(image), filter = e.dims(weights), out = at.outputs()[0].static_dims();
    batches = in[0];
    channels = in.back();
    features = out.back();
    multiplier = features / channels;
    for (std::size_t i = 0; i + 2 < in.size(); ++i)
      axes.push_back(
          convolution_axis(in[1 + i], out[1 + i], filter[i], op.strides[i], op.dilations[i], op.pads_begin[i]));
    source = materialize_channels(e, image);
    std::int64_t pitch = source.pitch();
    for (std::size_t i = axes.size(); i-- > 0;) {
      axes[i].pitch = pitch;
      pitch *= axes[i].in;
    }
    image_size = pitch;
    filter_source = e.materialize(weights);
    accumulation = accumulation_type(source.memory.type);
    divide_lines();
  }

  // Stores the anchor's result, which is the convolution's.
  void emit() {
    std::int64_t panels = 0;
    for (const column_segment& segment : segments) panels += segment.count;
    // A line of one panel is little work, so an item covers several lines of a panel, or several panels of a line.
    std::vector<std::int64_t> dims = lines();
    dims.push_back(panels);
    begin("depthwise", dims);
    std::vector<std::pair<tile_writer, tile_writer>> writers;
    for (const column_segment& segment : segments)
      writers.emplace_back(tile_writer(e, tile_of(segment, pixels), accumulation),
                           tile_writer(e, tile_of(segment, 1), accumulation));
    code.loop(e.begin(), e.end(), 1, [&](Value item) {
      Value panel = find_line(code.delinearize(item, dims));
      for (std::size_t s = 0; s < segments.size(); ++s) {
        const column_segment& segment = segments[s];
        auto body = [&] {
          Value column =
              code.add(code.mul(code.sub(panel, segment.first_panel), segment.columns()), segment.first_column);
          emit_columns(segment, column, code.constant(0), code.constant(axes.back().outputs()),
                       [&](bool whole, const values& sums, const tile_place& place) {
                         (whole ? writers[s].first : writers[s].second).write(sums, place);
                       });
        };
        if (segments.size() == 1) body();
        else code.when(inside(panel, segment.first_panel, segment.first_panel + segment.count), body);
      }
    });
    e.end_stage();
  }

  // The same, but the anchor normalizes the channels. An item first computes all channels of some pixels of a line into
  // memory on the stack, then normalizes each pixel and stores it.
  void emit_normalized() {
    const std::int64_t line = axes.back().outputs(), parts = (line * features + most_kept - 1) / most_kept;
    std::int64_t part = (line + parts - 1) / parts;
    if (const std::int64_t tiles = (part + pixels - 1) / pixels; tiles * pixels * features <= most_kept)
      part = tiles * pixels;
    std::vector<std::int64_t> dims = lines();
    dims.push_back((line + part - 1) / part);
    begin("depthwise_normalize", dims);
    kept_pixels kept(e, at, segments, std::min(part, line));
    code.loop(e.begin(), e.end(), 1, [&](Value item) {
      Value first = code.mul(find_line(code.delinearize(item, dims)), part),
            last = code.min(code.add(first, part), line);
      for (const column_segment& segment : segments)
        code.loop(segment.first_column, segment.first_column + segment.count * segment.columns(), segment.columns(),
                  [&](Value column) {
                    emit_columns(segment, column, first, last,
                                 [&](bool whole, const values& sums, const tile_place& place) {
                                   kept.keep(first, tile_of(segment, whole ? pixels : 1), sums, place);
                                 });
                  });
      code.loop(first, last, 1, [&](Value x) {
        outputs.back() = x;
        values where{batch};
        where.insert(where.end(), outputs.begin(), outputs.end());
        kept.normalize(first, std::move(where));
      });
    });
    e.end_stage();
  }

 private:
  // Stores the sums of a tile; `whole`: it has all `pixels`, not one.
  using sink = std::function<void(bool whole, const values& sums, const tile_place& place)>;

  // Chooses the tiles of a line and of the channels.
  void divide_lines() {
    const contraction_axis& line = axes.back();
    const axis_phase& phase = line.phases[0];
    // The windows of pixels [inner_begin, inner_end) do not touch the border.
    inner_begin = std::min(phase.outputs, (std::max<std::int64_t>(0, -phase.first) + line.stride - 1) / line.stride);
    const std::int64_t room = line.in - 1 - (phase.taps - 1) * line.tap_stride - phase.first;
    inner_end = std::max(inner_begin, std::min(phase.outputs, room < 0 ? 0 : room / line.stride + 1));
    const std::int64_t lanes = register_lanes(e, accumulation);
    const std::int64_t vectors = std::clamp<std::int64_t>(
        features / lanes, 1, std::max<std::int64_t>(1, choose(e.configuration, "vectors", most_vectors)));
    const std::int64_t most_pixels = std::max<std::int64_t>(1, inner_end - inner_begin),
                       standard =
                           choose_pixels(inner_end - inner_begin, (e.target.vector_registers - 4) / vectors, vectors);
    pixels = std::clamp<std::int64_t>(choose(e.configuration, "pixels", standard), 1, most_pixels);
    segments = exact_segments({1, vectors, lanes}, features);
  }

  static tile_shape tile_of(const column_segment& segment, std::int64_t rows) {
    return {rows, segment.vectors, segment.lanes};
  }

  // Lines of pixels: the extents of all axes but the last one and the channels.
  std::vector<std::int64_t> lines() const {
    std::vector<std::int64_t> result{batches};
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) result.push_back(axes[i].outputs());
    return result;
  }

  void begin(const std::string& name, const std::vector<std::int64_t>& items) {
    std::int64_t grid = 1;
    for (std::int64_t n : items) grid *= n;
    e.begin_stage(name, grid);
    image_pointer = e.pointer(source.memory);
    filter_pointer = e.pointer(filter_source);
  }

  // Sets the line of an item, and returns the item's last digit.
  Value find_line(const values& digits) {
    batch = digits[0];
    // The last entry is replaced by the pixel.
    outputs.assign(digits.begin() + 1, digits.end());
    return digits.back();
  }

  // Computes the channels of the segment's panel that begins at `column`, for pixels [first, last) of the line.
  void emit_columns(const column_segment& segment, Value column, Value first, Value last, const sink& store) {
    Value begin = code.min(code.max(first, inner_begin), last),
          tiles = code.div(code.max(code.sub(code.min(last, inner_end), begin), 0), pixels),
          end = code.add(begin, code.mul(tiles, pixels));
    code.loop(begin, end, pixels, [&](Value x) { emit_tile(tile_of(segment, pixels), true, x, column, false, store); });
    // The pixels at the left border, and those that the tiles leave at the right.
    Value left = code.sub(begin, first);
    code.loop(code.constant(0), code.add(left, code.sub(last, end)), 1, [&](Value i) {
      Value after = code.add(i, code.sub(end, left));
      Value x = code_builder::known(left) == 0 ? after : code.select(code.less(i, left), code.add(first, i), after);
      emit_tile(tile_of(segment, 1), false, x, column, axes.back().clipped(), store);
    });
  }

  Value inside(Value v, std::int64_t low, std::int64_t high) {
    Value below = code.less(v, code.constant(high));
    return low == 0 ? below : Value(code.make<mlir::arith::AndIOp>(below, code.less(code.constant(low - 1), v)));
  }

  void emit_tile(const tile_shape& shape, bool whole, Value x, Value column, bool clip, const sink& store) {
    outputs.back() = x;
    values sums = reduce(0, shape, code.add(code.mul(batch, image_size), source.first), code.constant(0), column, clip,
                         zero_tile(code, shape, accumulation));
    tile_place place{.valid_rows = code.constant(shape.rows), .rows_always_full = true, .column = column};
    place.locate = [&](Value row) {
      values where{batch};
      where.insert(where.end(), outputs.begin(), outputs.end());
      where.back() = code.add(where.back(), row);
      return where;
    };
    store(whole, sums, place);
  }

  values reduce(std::size_t i, const tile_shape& shape, Value offset, Value window, Value column, bool clip,
                values sums) {
    const contraction_axis& axis = axes[i];
    const axis_phase& phase = axis.phases[0];
    const bool last = i + 1 == axes.size();
    Value base = code.add(code.mul(outputs[i], axis.stride), phase.first);
    auto tap = [&](Value j, values sums) {
      Value at = code.add(offset, code.mul(code.add(base, code.mul(j, axis.tap_stride)), axis.pitch));
      Value tap_window = code.add(code.mul(window, axis.window), j);
      return last ? multiply(shape, at, tap_window, column, std::move(sums))
                  : reduce(i + 1, shape, at, tap_window, column, clip, std::move(sums));
    };
    if (last && !clip && phase.taps <= most_unrolled_taps) {
      for (std::int64_t j = 0; j < phase.taps; ++j) sums = tap(code.constant(j), std::move(sums));
      return sums;
    }
    Value low = code.constant(0), high = code.constant(phase.taps);
    if (last ? clip : axis.clipped()) {
      low = ceil_div_positive(code.sub(code.constant(0), base), axis.tap_stride);
      high = code.min(high, ceil_div_positive(code.sub(code.constant(axis.in), base), axis.tap_stride));
    }
    return code.loop(low, high, 1, std::move(sums), [&](Value j, std::span<const Value> carried) {
      return tap(j, values(carried.begin(), carried.end()));
    });
  }

  Value ceil_div_positive(Value a, std::int64_t b) { return code.div(code.add(code.max(a, 0), b - 1), b); }

  values multiply(const tile_shape& shape, Value offset, Value window, Value column, values sums) {
    const std::int64_t pixel = axes.back().stride * axes.back().pitch;
    for (std::int64_t v = 0; v < shape.vectors; ++v) {
      Value feature = code.add(column, v * shape.lanes);
      Value weight = widen(
          code,
          code.load(filter_pointer, code.add(code.mul(window, features), feature), filter_source.type, shape.lanes),
          filter_source.type, accumulation);
      for (std::int64_t r = 0; r < shape.rows; ++r) {
        Value& sum = sums[static_cast<std::size_t>(r * shape.vectors + v)];
        Value pixels = widen(code, load_channels(code.add(offset, r * pixel), feature, shape.lanes), source.memory.type,
                             accumulation);
        sum = is_float(accumulation) ? code.fma(pixels, weight, sum) : code.add(code.mul(pixels, weight), sum);
      }
    }
    return sums;
  }

  // Loads the channels that `lanes` features from `feature` on are computed from.
  Value load_channels(Value offset, Value feature, std::int64_t lanes) {
    if (multiplier == 1) return code.load(image_pointer, code.add(offset, feature), source.memory.type, lanes);
    if (lanes % multiplier == 0 || multiplier % lanes == 0) {
      // `feature` is a multiple of `lanes`: each of consecutive channels serves `multiplier` lanes, or one serves all.
      const std::int64_t count = std::max<std::int64_t>(1, lanes / multiplier);
      Value loaded =
          code.load(image_pointer, code.add(offset, code.div(feature, multiplier)), source.memory.type, count);
      return count == 1 ? code.splat(loaded, lanes) : repeat_lanes(loaded, lanes / count);
    }
    Value each = code.div(code.add(code.splat(feature, lanes), code.lane_numbers(lanes)), multiplier);
    return code.load_gathered(image_pointer, code.add(code.splat(offset, lanes), each), source.memory.type);
  }

  // Returns a vector in which every lane of `v` stands `count` times in succession.
  Value repeat_lanes(Value v, std::int64_t count) {
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < code_builder::lanes_of(v) * count; ++i) order.push_back(i / count);
    return code.make<mlir::vector::ShuffleOp>(v, v, order);
  }

  kernel_emitter& e;
  code_builder& code;
  const instruction& at;
  std::int64_t batches, channels, features, multiplier, image_size;
  std::int64_t inner_begin, inner_end, pixels;  // of a line; of a tile
  std::vector<contraction_axis> axes;
  std::vector<column_segment> segments;
  channel_view source;
  buffer filter_source;
  element_type accumulation;
  Value image_pointer, filter_pointer, batch;
  values outputs;
};

}  // namespace

void emit_depthwise(kernel_emitter& e) { depthwise_emitter(e, *e.anchor()).emit(); }

bool emit_normalized_depthwise(kernel_emitter& e) {
  const instruction* window = find_normalized_window(*e.anchor());
  if (window) depthwise_emitter(e, *window).emit_normalized();
  return window != nullptr;
}

std::vector<candidate> depthwise_space(kernel_emitter& e, const instruction& window) {
  const std::vector<std::int64_t> out = window.outputs()[0].static_dims();
  const std::int64_t line = out[out.size() - 2],
                     lanes = register_lanes(e, accumulation_type(window.inputs()[0].type().type)),
                     registers = e.target.vector_registers;
  std::vector<candidate> result;
  for (std::int64_t vectors : {1, 2, 4})
    for (std::int64_t pixels = 1; pixels <= std::min(line, registers - 2); ++pixels) {
      if (vectors > 1 && (vectors - 1) * lanes >= out.back()) continue;
      if (pixels * vectors + 2 > registers) continue;
      // A weight is loaded for each tap and tile, an input for each product. Pixels that do not fill a tile are
      // computed one by one. With few sums, multiply-adds wait for the latency of earlier ones.
      const double tiles = static_cast<double>(line / pixels), singles = static_cast<double>(line % pixels),
                   p = static_cast<double>(pixels), v = static_cast<double>(vectors);
      const double tile = std::max({p * v, (p * v + v) / 2 * 1.0, 4.0}) + 0.5 * v, single = std::max(v, 4.0) + 0.5 * v;
      result.push_back({{{"pixels", pixels}, {"vectors", vectors}}, (tiles * tile + singles * single) / v});
    }
  return result;
}

}  // namespace kiln::cpu
