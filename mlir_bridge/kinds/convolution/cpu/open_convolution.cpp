// Convolutions of images of open sizes, channels last. The pixels of the result are the rows of tiles, the channels of
// a group the columns. A tap in the padding reads from a pixel of zeros, so the image is not copied.
#include <array>
#include <functional>
#include <numeric>

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/cpu/contraction/open_panels.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
#include "mlir_bridge/kinds/convolution/cpu/open_image.hpp"
#include "mlir_bridge/kinds/convolution/generators.hpp"

namespace kiln::cpu {

namespace {

constexpr std::int64_t tiles_per_item = 4;
// Pixels that share the weights in registers.
constexpr std::int64_t depthwise_pixels = 4;

class open_convolution {
 public:
  explicit open_convolution(kernel_emitter& emitter)
      : e(emitter),
        code(emitter.code),
        op(*e.anchor()->op().get_if<convolution>()),
        image(e.anchor()->inputs()[0]),
        weights(e.anchor()->inputs()[1]),
        result(e.anchor_result().type()),
        accumulation(accumulation_type(image.type().type)) {
    const auto& of_image = image.type().dims;
    const auto& of_weights = weights.type().dims;
    axes = op.strides.size();
    in.assign(of_image.begin() + 1, of_image.end() - 1);
    out.assign(result.dims.begin() + 1, result.dims.end() - 1);
    for (std::size_t i = 0; i < axes; ++i) window.push_back(of_weights[i].value());
    taps = std::accumulate(window.begin(), window.end(), std::int64_t{1}, std::multiplies<>());
    channels = of_weights[axes].value();
    columns = of_weights[axes + 1].value() / op.groups;
    // Lanes of a depthwise convolution are channels.
    tile = is_depthwise() ? open_tile(e, accumulation) : open_tile(e, accumulation, columns);
    places = out;
    places.insert(places.begin(), result.dims[0]);
    pixels = std::accumulate(places.begin(), places.end(), dim(1), std::multiplies<>());
  }

  void emit() {
    image_at = materialize_channels(e, image);
    if (is_depthwise()) return emit_depthwise();
    const open_panels right(e,
                            {weights,
                             {op.groups},
                             columns,
                             taps * channels,
                             axes + 1,
                             [this](std::span<const Value> group, Value step, Value column) {
                               values at = code.delinearize(code.div(step, channels), window);
                               at.push_back(code.rem(step, channels));
                               at.push_back(code.add(code.mul(group[0], columns), column));
                               return at;
                             }},
                            tile);
    const std::int64_t item_pixels = tile.rows * tiles_per_item;
    e.parallel_open("convolution", {op.groups, (pixels + item_pixels - 1) / item_pixels},
                    item_pixels * columns * taps * channels / tile.lanes, [&](std::span<const Value> at) {
                      const open_tile_store store(e, tile, accumulation, columns);
                      const position_list list(e, tile.rows, places.size());
                      const Value first = code.mul(at[1], item_pixels),
                                  last = e.min(code.add(first, item_pixels), pixels);
                      const values indices = e.delinearize(first, places);
                      code.loop(code.constant(0), e.size(right.count()), 1, [&](Value panel) {
                        walk(first, last, tile.rows, indices, [&](Value pixel, const std::vector<values>& outputs) {
                          emit_rows({right, at[0], panel, store, list}, pixel, outputs);
                        });
                      });
                    });
  }

 private:
  bool is_depthwise() const { return channels == 1 && columns == 1 && op.groups > 1; }

  // Calls `body` for each `count` pixels of [first, last), with their positions. The first lies at `indices`.
  void walk(Value first, Value last, std::int64_t count, const values& indices,
            const std::function<void(Value, const std::vector<values>&)>& body) {
    code.loop(first, last, count, indices, [&](Value pixel, std::span<const Value> at) {
      auto positions = pixel_positions(e, pixel, values(at.begin(), at.end()), count + 1, places);
      values next = std::move(positions.back());
      positions.pop_back();
      body(pixel, positions);
      return next;
    });
  }

  bool padded() const {
    for (std::size_t i = 0; i < axes; ++i)
      if (op.pads_begin[i] != 0 || op.pads_end[i] != 0) return true;
    return false;
  }

  // Returns the places that the first tap reads for these output positions.
  std::vector<pixel_reader::origin> origins(const pixel_reader& reader, std::span<const values> outputs,
                                            Value first_channel) {
    std::vector<pixel_reader::origin> result;
    for (const values& position : outputs) {
      values place;
      for (std::size_t i = 0; i < axes; ++i)
        place.push_back(code.add(code.mul(position[1 + i], op.strides[i]), -op.pads_begin[i]));
      result.push_back(reader.from(position[0], std::move(place), first_channel));
    }
    return result;
  }
  pixel_reader::step step_of(const pixel_reader& reader, Value tap) {
    values distance = code.delinearize(tap, window);
    for (std::size_t i = 0; i < axes; ++i) distance[i] = code.mul(distance[i], op.dilations[i]);
    return reader.by(std::move(distance));
  }
  pixel_reader reader() { return {e, image_at, in, channels == 1 ? op.groups : channels, padded()}; }

  // The common state of the tiles of a group and a panel.
  struct column {
    const open_panels& right;
    Value group, panel;
    const open_tile_store& store;
    const position_list& list;
  };

  // Few pixels are left at the end: half of a tile's rows take half of the time.
  void emit_rows(const column& of, Value first, const std::vector<values>& outputs) {
    const Value left = code.sub(e.size(pixels), first);
    const std::int64_t half = tile.rows / 2;
    if (half == 0) return emit_tile(of, first, left, outputs);
    code.branch(
        code.less(code.constant(half), left),
        [&] {
          emit_tile(of, first, left, outputs);
          return values{};
        },
        [&] {
          emit_tile(of, first, left, std::span(outputs).first(static_cast<std::size_t>(half)));
          return values{};
        });
  }

  void emit_tile(const column& of, Value first, Value left, std::span<const values> outputs) {
    const tile_shape shape{static_cast<std::int64_t>(outputs.size()), tile.vectors, tile.lanes};
    const pixel_reader pixels_of = reader();
    const auto from = origins(pixels_of, outputs, code.mul(of.group, channels));
    const std::array<Value, 1> of_group{of.group};
    const open_right panel_at = of.right.panel(of_group, of.panel);
    const values sums = code.loop(code.constant(0), code.constant(taps), 1, zero_tile(code, shape, accumulation),
                                  [&](Value tap, std::span<const Value> so_far) {
                                    const pixel_reader::step step = step_of(pixels_of, tap);
                                    open_left rows{image_at.memory.type, {}, code.constant(1)};
                                    for (const pixel_reader::origin& o : from)
                                      rows.rows.push_back(pixels_of.address(o, step));
                                    open_right of_tap = panel_at;
                                    of_tap.offset = code.add(of_tap.offset, code.mul(tap, channels * tile.columns()));
                                    return open_sums(code, shape, rows, of_tap, code.constant(channels), accumulation,
                                                     values(so_far.begin(), so_far.end()));
                                  });
    const Value first_column = code.mul(of.panel, tile.columns());
    const Value rows = code.min(left, shape.rows),
                here = code.min(code.sub(code.constant(columns), first_column), tile.columns());
    const auto write_row = [&](Value row, const span_part& part, Value computed) {
      const auto known = code_builder::known(row);
      values at = known ? outputs[static_cast<std::size_t>(*known)] : of.list.at(row);
      at.push_back(code.add(code.add(code.mul(of.group, columns), first_column), part.first));
      write(at, computed, part.lanes);
    };
    of.store.write(sums, rows, here, of.right.whole(), write_row, [&] { of.list.set(outputs); });
  }

  void write(const values& at, Value computed, std::int64_t lanes) {
    evaluator ev(e);
    ev.bind(e.anchor_result(), to_result(code, computed, accumulation, result.type));
    ev.store_outputs(at, lanes);
  }

  // Computes each channel separately: lanes are channels, and a few pixels share the weights.
  void emit_depthwise() {
    const buffer weights_at = e.materialize(weights);
    const std::int64_t item_pixels = depthwise_pixels * 8;
    e.parallel_open(
        "depthwise", {(pixels + item_pixels - 1) / item_pixels}, item_pixels * op.groups * taps / tile.lanes,
        [&](std::span<const Value> at) {
          const Value first = code.mul(at[0], item_pixels), last = e.min(code.add(first, item_pixels), pixels);
          walk(first, last, depthwise_pixels, e.delinearize(first, places),
               [&](Value pixel, const std::vector<values>& outputs) { emit_pixels(weights_at, pixel, outputs, last); });
        });
  }

  void emit_pixels(const buffer& weights_at, Value first, const std::vector<values>& outputs, Value last) {
    const pixel_reader pixels_of = reader();
    const auto from = origins(pixels_of, outputs, code.constant(0));
    const open_span span(e, code.constant(0), code.constant(op.groups), tile.lanes, tile.lanes,
                         op.groups % tile.lanes == 0);
    span.walk([&](const span_part& part) {
      const values sums = code.loop(
          code.constant(0), code.constant(taps), 1,
          values(outputs.size(), code.number(code.type(accumulation, part.lanes), 0)),
          [&](Value tap, std::span<const Value> so_far) {
            const pixel_reader::step step = step_of(pixels_of, tap);
            const Value weight = widen(code,
                                       code.load(e.pointer(weights_at), code.add(code.mul(tap, op.groups), part.first),
                                                 weights_at.type, part.lanes),
                                       weights_at.type, accumulation);
            values next;
            for (std::size_t i = 0; i < outputs.size(); ++i) {
              const Value address = pixels_of.address(from[i], step);
              const element_type stored = image_at.memory.type;
              const Value x = widen(code, code.load(address, part.first, stored, part.lanes), stored, accumulation);
              next.push_back(is_float(accumulation) ? code.fma(x, weight, so_far[i])
                                                    : code.add(code.mul(x, weight), so_far[i]));
            }
            return next;
          });
      for (std::size_t i = 0; i < outputs.size(); ++i)
        code.when(code.less(code.add(first, static_cast<std::int64_t>(i)), last), [&] {
          values at = outputs[i];
          at.push_back(part.first);
          write(at, sums[i], part.lanes);
        });
    });
  }

  kernel_emitter& e;
  code_builder& code;
  const convolution& op;
  value image, weights;
  shape result;
  element_type accumulation;
  tile_shape tile;
  std::size_t axes = 0;
  std::vector<dim> in, out, places;  // `places`: batch and `out`
  std::vector<std::int64_t> window;
  // Of one group.
  std::int64_t taps = 1, channels = 1, columns = 1;
  dim pixels;  // of all images
  channel_view image_at;
};

}  // namespace

void emit_open_convolution(kernel_emitter& e) { open_convolution(e).emit(); }

bool opens_convolution(const instruction& anchor) {
  const auto& op = *anchor.op().get_if<convolution>();
  return op.layout == tensor_layout::channels_last && anchor.inputs()[1].type().is_static() &&
         anchor.inputs()[0].type().dims.back().is_static();
}

}  // namespace kiln::cpu
