// Convolutions of images of open sizes, channels last. The pixels of the result are the rows of tiles, the channels of
// a group the columns. A tap in the padding reads from a pixel of zeros, so the image is not copied.
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/cpu/contraction/open_panels.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
#include "mlir_bridge/cpu/contraction/wide_factor.hpp"
#include "mlir_bridge/kinds/convolution/cpu/open_borders.hpp"
#include "mlir_bridge/kinds/convolution/cpu/open_depthwise.hpp"
#include "mlir_bridge/kinds/convolution/cpu/open_image.hpp"
#include "mlir_bridge/kinds/convolution/cpu/winograd.hpp"
#include "mlir_bridge/kinds/convolution/generators.hpp"

namespace kiln::cpu {

namespace {

constexpr std::int64_t tiles_per_item = 4;
// The taps of a line of the window are one if they have at most so many channels.
constexpr std::int64_t few_channels = 16;

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
    pads_begin = op.pads_begin, pads_end = op.pads_end, lines = window;
    by_lane = find_lane_products(e.target, image.type().type, weights.type().type);
    if (by_lane && by_lane->neighbours != bytes_of_lane) by_lane.reset();
    run = channels;
    if (joins_taps()) run *= std::exchange(lines.back(), 1);
    if (by_lane && run == channels && channels % bytes_of_lane) by_lane.reset();
    steps_of_run = steps_of(by_lane, run);
    tile = open_tile(e, accumulation, columns, by_lane);
    places = out;
    places.insert(places.begin(), result.dims[0]);
    pixels = std::accumulate(places.begin(), places.end(), dim(1), std::multiplies<>());
  }

  bool is_depthwise() const { return channels == 1 && columns == 1 && op.groups > 1; }

  // `used` is an expression of the open sizes: 1 where this algorithm computes the result, 0 where another one does.
  void emit(const dim& used) {
    const bool is_narrow = is_float(image.type().type) && image.type().type != accumulation;
    image_at = is_narrow ? channel_view{materialize_wide(e, image)} : materialize_channels(e, image);
    const std::int64_t room = steps_of_run * neighbours_of(by_lane);  // of a run
    if (run != channels && (padded() || room != run)) add_borders(room - run);
    const auto exists = [this, room](Value step) { return code.less(code.rem(step, room), code.constant(run)); };
    const open_panels right(e,
                            {weights,
                             {op.groups},
                             columns,
                             taps * channels / run * room,
                             axes + 1,
                             [this, room](std::span<const Value> group, Value step, Value column) {
                               const Value inside = code.min(code.rem(step, room), run - 1),
                                           element = code.add(code.mul(code.div(step, room), run), inside);
                               values at = code.delinearize(code.div(element, channels), window);
                               at.push_back(code.rem(element, channels));
                               at.push_back(code.add(code.mul(group[0], columns), column));
                               return at;
                             },
                             1,
                             by_lane,
                             room == run ? std::function<Value(Value)>() : exists},
                            tile);
    const std::int64_t item_pixels = tile.rows * tiles_per_item;
    e.parallel_open("convolution", {op.groups * used, (pixels + item_pixels - 1) / item_pixels},
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
      if (pads_begin[i] != 0 || pads_end[i] != 0) return true;
    return false;
  }

  // Returns true if the taps of a line of the window lie together and are read as one.
  bool joins_taps() const {
    if (op.groups != 1 || channels > few_channels || window.back() == 1 || op.dilations.back() != 1) return false;
    const auto view = find_channels(e, image);
    return !view || view->pitch() == channels;
  }

  // Goes on with a copy of the image that has its padding.
  void add_borders(std::int64_t elements_behind) {
    image_at = {copy_with_borders(e, image_at, in, pads_begin, pads_end, elements_behind), 0};
    for (std::size_t i = 0; i < axes; ++i) in[i] = in[i] + pads_begin[i] + pads_end[i];
    pads_begin.assign(axes, 0), pads_end.assign(axes, 0);
  }

  // Returns the places that the first tap reads for these output positions.
  std::vector<pixel_reader::origin> origins(const pixel_reader& reader, std::span<const values> outputs,
                                            Value first_channel) {
    std::vector<pixel_reader::origin> result;
    for (const values& position : outputs) {
      values place;
      for (std::size_t i = 0; i < axes; ++i)
        place.push_back(code.add(code.mul(position[1 + i], op.strides[i]), -pads_begin[i]));
      result.push_back(reader.from(position[0], std::move(place), first_channel));
    }
    return result;
  }
  pixel_reader::step step_of(const pixel_reader& reader, Value tap) {
    values distance = code.delinearize(tap, lines);
    for (std::size_t i = 0; i < axes; ++i) distance[i] = code.mul(distance[i], op.dilations[i]);
    return reader.by(std::move(distance));
  }
  pixel_reader reader() { return {e, image_at, in, run, padded()}; }

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
    const values sums = code.loop(code.constant(0), code.constant(taps * channels / run), 1,
                                  zero_tile(code, shape, accumulation), [&](Value tap, std::span<const Value> so_far) {
                                    const pixel_reader::step step = step_of(pixels_of, tap);
                                    const std::int64_t neighbours = neighbours_of(by_lane);
                                    open_left rows{image_at.memory.type, {}, code.constant(neighbours)};
                                    for (const pixel_reader::origin& o : from)
                                      rows.rows.push_back(pixels_of.address(o, step));
                                    open_right of_tap = panel_at;
                                    of_tap.offset =
                                        code.add(of_tap.offset, code.mul(tap, steps_of_run * tile.columns()));
                                    return open_sums(code, shape, rows, of_tap, code.constant(steps_of_run),
                                                     accumulation, values(so_far.begin(), so_far.end()));
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

  kernel_emitter& e;
  code_builder& code;
  const convolution& op;
  value image, weights;
  shape result;
  element_type accumulation;
  tile_shape tile;
  std::optional<lane_products> by_lane;  // if bytes are multiplied in lanes
  std::size_t axes = 0;
  std::vector<dim> in, out, places;  // `places`: batch and `out`
  std::vector<std::int64_t> window, pads_begin, pads_end;
  // Taps that are read together are one of `lines`, a run of so many elements.
  std::vector<std::int64_t> lines;
  std::int64_t run = 1, steps_of_run = 1;
  // Of one group.
  std::int64_t taps = 1, channels = 1, columns = 1;
  dim pixels;  // of all images
  channel_view image_at;
};

}  // namespace

void emit_open_convolution(kernel_emitter& e) {
  open_convolution direct(e);
  if (direct.is_depthwise()) return emit_open_depthwise(e);
  const dim few_products = winograd_sizes(e);
  if (few_products != 0) emit_winograd(e, few_products);
  direct.emit(1 - few_products);
}

bool opens_convolution(const instruction& anchor) {
  const auto& op = *anchor.op().get_if<convolution>();
  return op.layout == tensor_layout::channels_last && anchor.inputs()[1].type().is_static() &&
         anchor.inputs()[0].type().dims.back().is_static();
}

}  // namespace kiln::cpu
