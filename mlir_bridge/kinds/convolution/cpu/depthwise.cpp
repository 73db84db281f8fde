#include "mlir_bridge/kinds/convolution/cpu/depthwise.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

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
// At the ends of a line the window reaches beyond the image, so tiles there have code of their own, in which the taps
// inside are known. It is written only if a row of the window has at most so many multiply-adds.
constexpr std::int64_t most_unrolled_products = 1024;
// Maximum numbers of vectors of channels and of pixels in a tile, such that their sums and one row of weights fit into
// registers.
constexpr std::int64_t most_vectors = 2;
constexpr std::int64_t most_pixels = 16;
// More channels of a group are a contraction.
constexpr std::int64_t most_group_channels = 8;
// Elements that wait on the stack for the normalization.
constexpr std::int64_t most_kept = 8192;

// Cost model, in multiply-adds of a vector, for one tap: fewer than four sums wait for the latency of earlier ones, and
// each tile loads the weights again.
constexpr std::int64_t least_sums = 4;
std::int64_t tap_cost(std::int64_t pixels, std::int64_t vectors) {
  return std::max(pixels * vectors, least_sums) + vectors;
}

// Returns the pixels per tile, at most `most`, for a line with `inner` pixels that see the whole window, of which other
// pixels are computed one by one.
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
    group_channels = filter[filter.size() - 2];
    group_features = features / (channels / group_channels);
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
  }

  // Stores the anchor's result, which is the convolution's.
  void emit() {
    divide_lines(true);
    std::int64_t panels = 0;
    for (const column_segment& segment : segments) panels += segment.count;
    // A line of one panel is little work, so an item covers several lines of a panel, or several panels of a line.
    std::vector<std::int64_t> dims = lines();
    dims.push_back(panels);
    begin("depthwise", dims);
    std::vector<std::map<std::int64_t, tile_writer>> writers(segments.size());
    for (std::size_t s = 0; s < segments.size(); ++s)
      for (std::int64_t rows : {pixels, rest})
        writers[s].try_emplace(rows, e, tile_of(segments[s], rows), accumulation);
    code.loop(e.begin(), e.end(), 1, [&](Value item) {
      Value panel = find_line(code.delinearize(item, dims));
      for (std::size_t s = 0; s < segments.size(); ++s) {
        const column_segment& segment = segments[s];
        auto body = [&] {
          Value column =
              code.add(code.mul(code.sub(panel, segment.first_panel), segment.columns()), segment.first_column);
          emit_line(segment, column, [&](std::int64_t rows, const values& sums, const tile_place& place) {
            writers[s].at(rows).write(sums, place);
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
    divide_lines(parts == 1);
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
                    auto keep = [&](std::int64_t rows, const values& sums, const tile_place& place) {
                      kept.keep(first, tile_of(segment, rows), sums, place);
                    };
                    if (parts == 1) emit_line(segment, column, keep);
                    else emit_columns(segment, column, first, last, keep);
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
  // Which taps of the last axis a tile sees: all of them; for each pixel those that are known from its place, which is
  // constant; or those in a range that the code computes for its only pixel.
  enum class border { none, constant, computed };
  // Stores the sums of a tile with `rows` pixels, which is `pixels` or `rest`.
  using sink = std::function<void(std::int64_t rows, const values& sums, const tile_place& place)>;

  // Chooses the tiles of a line and of the channels. `whole`: all pixels of a line are computed together.
  void divide_lines(bool whole) {
    const contraction_axis& line = axes.back();
    const axis_phase& phase = line.phases[0];
    // The windows of pixels [inner_begin, inner_end) do not touch the border.
    inner_begin = std::min(phase.outputs, (std::max<std::int64_t>(0, -phase.first) + line.stride - 1) / line.stride);
    const std::int64_t behind = line.in - 1 - (phase.taps - 1) * line.tap_stride - phase.first;
    inner_end = std::max(inner_begin, std::min(phase.outputs, behind < 0 ? 0 : behind / line.stride + 1));
    const std::int64_t lanes = register_lanes(e, accumulation), registers = e.target.vector_registers,
                       all_vectors = std::max<std::int64_t>(1, features / lanes);
    // The weights of a line of the window, and an element of the image, take registers, too.
    const std::int64_t products = phase.taps * group_channels,
                       room = std::max<std::int64_t>(registers / 2, registers - products - 2),
                       tiles = (phase.outputs - 1) / std::min(room, most_pixels) + 1;
    pixels =
        std::clamp<std::int64_t>(choose(e.configuration, "pixels", (phase.outputs - 1) / tiles + 1), 1, phase.outputs);
    rest = (phase.outputs - 1) % pixels + 1;
    // Tiles [loop_begin, loop_end) see the whole window.
    loop_begin = (inner_begin + pixels - 1) / pixels;
    loop_end = std::max(loop_begin, inner_end / pixels);
    const std::int64_t ends = phase.outputs - (loop_end - loop_begin) * pixels;
    std::int64_t vectors = std::clamp<std::int64_t>(
        choose(e.configuration, "vectors", std::clamp<std::int64_t>(room / pixels, 1, most_vectors)), 1, all_vectors);
    unrolled_ends = whole && ends * vectors * products <= most_unrolled_products;
    if (!unrolled_ends)
      vectors = std::clamp<std::int64_t>(choose(e.configuration, "vectors", most_vectors), 1, all_vectors);
    segments = exact_segments({1, vectors, lanes}, features);
    if (unrolled_ends) return;
    const std::int64_t inner = std::max<std::int64_t>(1, inner_end - inner_begin),
                       most = std::max<std::int64_t>(1, (registers - 4) / vectors);
    pixels = std::clamp<std::int64_t>(choose(e.configuration, "pixels", choose_pixels(inner, most, vectors)), 1, inner);
    rest = 1;
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

  // Computes the channels of the segment's panel that begins at `column`, for a line.
  void emit_line(const column_segment& segment, Value column, const sink& store) {
    const std::int64_t line = axes.back().outputs();
    if (!unrolled_ends) return emit_columns(segment, column, code.constant(0), code.constant(line), store);
    for (std::int64_t first = 0; first < line; first += pixels) {
      if (first != loop_begin * pixels || loop_begin == loop_end) {
        emit_tile(tile_of(segment, std::min(pixels, line - first)), code.constant(first), column, border::constant,
                  store);
        continue;
      }
      code.loop(first, loop_end * pixels, pixels,
                [&](Value x) { emit_tile(tile_of(segment, pixels), x, column, border::none, store); });
      first = (loop_end - 1) * pixels;
    }
  }

  // The same for pixels [first, last) of the line.
  void emit_columns(const column_segment& segment, Value column, Value first, Value last, const sink& store) {
    Value begin = code.min(code.max(first, inner_begin), last),
          tiles = code.div(code.max(code.sub(code.min(last, inner_end), begin), 0), pixels),
          end = code.add(begin, code.mul(tiles, pixels));
    code.loop(begin, end, pixels,
              [&](Value x) { emit_tile(tile_of(segment, pixels), x, column, border::none, store); });
    // The pixels at the left border, and those that the tiles leave at the right.
    Value left = code.sub(begin, first);
    code.loop(code.constant(0), code.add(left, code.sub(last, end)), 1, [&](Value i) {
      Value after = code.add(i, code.sub(end, left));
      Value x = code_builder::known(left) == 0 ? after : code.select(code.less(i, left), code.add(first, i), after);
      emit_tile(tile_of(segment, 1), x, column, axes.back().clipped() ? border::computed : border::none, store);
    });
  }

  Value inside(Value v, std::int64_t low, std::int64_t high) {
    Value below = code.less(v, code.constant(high));
    return low == 0 ? below : Value(code.make<mlir::arith::AndIOp>(below, code.less(code.constant(low - 1), v)));
  }

  void emit_tile(const tile_shape& shape, Value x, Value column, border at_border, const sink& store) {
    outputs.back() = x;
    values sums = reduce(0, shape, code.add(code.mul(batch, image_size), source.first), code.constant(0), column,
                         at_border, zero_tile(code, shape, accumulation));
    tile_place place{.valid_rows = code.constant(shape.rows), .rows_always_full = true, .column = column};
    place.locate = [&](Value row) {
      values where{batch};
      where.insert(where.end(), outputs.begin(), outputs.end());
      where.back() = code.add(where.back(), row);
      return where;
    };
    store(shape.rows, sums, place);
  }

  values reduce(std::size_t i, const tile_shape& shape, Value offset, Value window, Value column, border at_border,
                values sums) {
    const contraction_axis& axis = axes[i];
    const axis_phase& phase = axis.phases[0];
    const bool last = i + 1 == axes.size();
    Value base = code.add(code.mul(outputs[i], axis.stride), phase.first);
    auto tap = [&](Value j, values sums) {
      Value at = code.add(offset, code.mul(code.add(base, code.mul(j, axis.tap_stride)), axis.pitch));
      Value tap_window = code.add(code.mul(window, axis.window), j);
      return last ? multiply(shape, at, tap_window, column, std::move(sums))
                  : reduce(i + 1, shape, at, tap_window, column, at_border, std::move(sums));
    };
    if (last && unrolled_ends)
      return multiply_line(shape, code.add(offset, code.mul(base, axis.pitch)), code.mul(window, axis.window), column,
                           at_border == border::constant ? code_builder::known(outputs[i]) : std::nullopt,
                           std::move(sums));
    if (last && at_border == border::none && phase.taps <= most_unrolled_taps) {
      for (std::int64_t j = 0; j < phase.taps; ++j) sums = tap(code.constant(j), std::move(sums));
      return sums;
    }
    Value low = code.constant(0), high = code.constant(phase.taps);
    if (last ? at_border == border::computed : axis.clipped()) {
      low = ceil_div_positive(code.sub(code.constant(0), base), axis.tap_stride);
      high = code.min(high, ceil_div_positive(code.sub(code.constant(axis.in), base), axis.tap_stride));
    }
    return code.loop(low, high, 1, std::move(sums), [&](Value j, std::span<const Value> carried) {
      return tap(j, values(carried.begin(), carried.end()));
    });
  }

  Value ceil_div_positive(Value a, std::int64_t b) { return code.div(code.add(code.max(a, 0), b - 1), b); }

  // Adds the products of a line of the window, of which each element of the image is loaded once. `offset` and `window`
  // are the first tap of the first pixel; `first`: the number of that pixel, if not all its taps lie in the image.
  values multiply_line(const tile_shape& shape, Value offset, Value window, Value column,
                       std::optional<std::int64_t> first, values sums) {
    const contraction_axis& axis = axes.back();
    const axis_phase& phase = axis.phases[0];
    const std::int64_t begin = first ? *first * axis.stride + phase.first : 0,
                       last = (shape.rows - 1) * axis.stride + (phase.taps - 1) * axis.tap_stride;
    for (std::int64_t v = 0; v < shape.vectors; ++v) {
      const Value feature = code.add(column, v * shape.lanes);
      values weights(static_cast<std::size_t>(phase.taps * group_channels));
      for (std::int64_t position = 0; position <= last; ++position) {
        if (first && (begin + position < 0 || begin + position >= axis.in)) continue;
        Value loaded;
        for (std::int64_t channel = 0; channel < group_channels; ++channel) {
          Value element;
          for (std::int64_t tap = 0; tap < phase.taps; ++tap) {
            const std::int64_t distance = position - tap * axis.tap_stride, row = distance / axis.stride;
            if (distance < 0 || distance % axis.stride || row >= shape.rows) continue;
            if (!loaded) loaded = load_image(code.add(offset, position * axis.pitch), feature, shape.lanes);
            if (!element) element = spread(loaded, shape.lanes, channel);
            Value& weight = weights[static_cast<std::size_t>(tap * group_channels + channel)];
            if (!weight) weight = load_weight(code.add(window, tap), channel, feature, shape.lanes);
            Value& sum = sums[static_cast<std::size_t>(row * shape.vectors + v)];
            sum = multiply_add(element, weight, sum);
          }
        }
      }
    }
    return sums;
  }

  // Adds the products of one tap.
  values multiply(const tile_shape& shape, Value offset, Value window, Value column, values sums) {
    const std::int64_t pixel = axes.back().stride * axes.back().pitch;
    for (std::int64_t v = 0; v < shape.vectors; ++v) {
      Value feature = code.add(column, v * shape.lanes);
      values weights;
      for (std::int64_t channel = 0; channel < group_channels; ++channel)
        weights.push_back(load_weight(window, channel, feature, shape.lanes));
      for (std::int64_t r = 0; r < shape.rows; ++r) {
        Value& sum = sums[static_cast<std::size_t>(r * shape.vectors + v)];
        Value loaded = load_image(code.add(offset, r * pixel), feature, shape.lanes);
        for (std::int64_t channel = 0; channel < group_channels; ++channel)
          sum = multiply_add(spread(loaded, shape.lanes, channel), weights[static_cast<std::size_t>(channel)], sum);
      }
    }
    return sums;
  }

  Value multiply_add(Value element, Value weight, Value sum) {
    return is_float(accumulation) ? code.fma(element, weight, sum) : code.add(code.mul(element, weight), sum);
  }

  Value load_weight(Value window, std::int64_t channel, Value feature, std::int64_t lanes) {
    Value row = code.add(code.mul(window, group_channels), channel);
    return widen(code, code.load(filter_pointer, code.add(code.mul(row, features), feature), filter_source.type, lanes),
                 filter_source.type, accumulation);
  }

  // A vector holds consecutive features. Returns how many consecutive channels it is computed from, or 0 if a group of
  // features lies in more than one vector. The first feature of a vector is a multiple of its lanes.
  std::int64_t channels_of_vector(std::int64_t lanes) const {
    if (lanes % group_features == 0) return lanes / group_features * group_channels;
    return group_channels == 1 && group_features % lanes == 0 ? 1 : 0;
  }

  // Loads these channels, or one for each lane.
  Value load_image(Value offset, Value feature, std::int64_t lanes) {
    Value loaded;
    if (const std::int64_t count = channels_of_vector(lanes)) {
      Value channel = code.mul(code.div(feature, group_features), group_channels);
      loaded = code.load(image_pointer, code.add(offset, channel), source.memory.type, count);
    } else {
      Value each = code.div(code.add(code.splat(feature, lanes), code.lane_numbers(lanes)), group_features);
      loaded = code.load_gathered(image_pointer, code.add(code.splat(offset, lanes), each), source.memory.type);
    }
    return widen(code, loaded, source.memory.type, accumulation);
  }

  // Returns, for each lane, `channel` of the group of its feature.
  Value spread(Value loaded, std::int64_t lanes, std::int64_t channel) {
    const std::int64_t count = code_builder::lanes_of(loaded);
    if (group_channels == 1 && count == lanes) return loaded;
    if (count == 1) return code.splat(loaded, lanes);
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < lanes; ++i) order.push_back(i / group_features * group_channels + channel);
    return code.make<mlir::vector::ShuffleOp>(loaded, loaded, order);
  }

  kernel_emitter& e;
  code_builder& code;
  const instruction& at;
  std::int64_t batches, channels, features, group_channels, group_features, image_size;
  std::int64_t inner_begin, inner_end, pixels, rest;  // of a line; of a tile; of the last tile
  // If set, the code of the tiles at both ends of a line is unrolled, and tiles [loop_begin, loop_end) are a loop.
  bool unrolled_ends;
  std::int64_t loop_begin, loop_end;
  std::vector<contraction_axis> axes;
  std::vector<column_segment> segments;
  channel_view source;
  buffer filter_source;
  element_type accumulation;
  Value image_pointer, filter_pointer, batch;
  values outputs;
};

}  // namespace

bool suits_depthwise(const kernel_emitter& e) {
  const convolution& op = *e.anchor()->op().get_if<convolution>();
  const value image = e.anchor()->inputs()[0];
  const std::int64_t channels = e.dims(image).back() / op.groups,
                     features = e.dims(e.anchor_result()).back() / op.groups;
  if (op.groups == 1 || channels == 1) return op.groups > 1;
  const element_type type = image.type().type;
  return type == element_type::f32 && channels <= most_group_channels && features > 1 &&
         std::has_single_bit(static_cast<std::uint64_t>(channels)) &&
         std::has_single_bit(static_cast<std::uint64_t>(features)) && register_lanes(e, type) % features == 0;
}

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
      // A weight is loaded for each tap and tile, an input for each product. With few sums, multiply-adds wait for the
      // latency of earlier ones. The last tile of a line may have fewer pixels.
      const double v = static_cast<double>(vectors);
      auto tile = [&](std::int64_t of) { return of ? std::max(static_cast<double>(of) * v, 4.0) + 0.5 * v : 0.0; };
      result.push_back({{{"pixels", pixels}, {"vectors", vectors}},
                        (static_cast<double>(line / pixels) * tile(pixels) + tile(line % pixels)) / v});
    }
  return result;
}

}  // namespace kiln::cpu
