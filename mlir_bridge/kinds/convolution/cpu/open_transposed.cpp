// Transposed convolutions of images of open sizes, channels last. Output o takes input i through window position w if
// o = i * stride + w * dilation - pad. All outputs o = phase + t * stride use the same positions w, so each combination
// of phases is a convolution of its own with stride 1. Its pixels t are the rows of tiles, the features of a group the
// columns. A tap outside of the image reads zeros.
#include <array>
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

// The taps of one axis, for each phase: their number `taps`; the first is window position `window`, at input
// t + `offset`. Each next one is `window_step` further in the window, and `offset_step` lower in the input.
struct phase_table {
  std::vector<double> taps, window, offset;
  std::int64_t window_step = 1, offset_step = 1;
};

phase_table phases_of(std::int64_t window, std::int64_t stride, std::int64_t dilation, std::int64_t pad) {
  const std::int64_t common = std::gcd(stride, dilation);
  phase_table result;
  result.window_step = stride / common;
  result.offset_step = dilation / common;
  for (std::int64_t phase = 0; phase < stride; ++phase) {
    std::int64_t taps = 0, first = 0, offset = 0;
    for (std::int64_t w = window; w-- > 0;) {
      const std::int64_t scaled = phase + pad - w * dilation;
      if (scaled % stride != 0) continue;
      ++taps;
      first = w;
      offset = scaled / stride;
    }
    result.taps.push_back(static_cast<double>(taps));
    result.window.push_back(static_cast<double>(first));
    result.offset.push_back(static_cast<double>(offset));
  }
  return result;
}

class open_transposed {
 public:
  explicit open_transposed(kernel_emitter& emitter)
      : e(emitter),
        code(emitter.code),
        op(*e.anchor()->op().get_if<transposed_convolution>()),
        image(e.anchor()->inputs()[0]),
        weights(e.anchor()->inputs()[1]),
        result(e.anchor_result().type()),
        accumulation(accumulation_type(image.type().type)) {
    const auto& of_image = image.type().dims;
    const auto& of_weights = weights.type().dims;
    axes = op.strides.size();
    in.assign(of_image.begin() + 1, of_image.end() - 1);
    out.assign(result.dims.begin() + 1, result.dims.end() - 1);
    for (std::size_t i = 0; i < axes; ++i) {
      window.push_back(of_weights[i].value());
      phases.push_back(phases_of(window[i], op.strides[i], op.dilations[i], op.pads_begin[i]));
      steps.push_back((out[i] + op.strides[i] - 1) / op.strides[i]);
    }
    columns = of_weights[axes].value();
    channels = of_weights[axes + 1].value() / op.groups;
    tile = open_tile(e, accumulation, columns);
    places = steps;
    places.insert(places.begin(), result.dims[0]);
    pixels = std::accumulate(places.begin(), places.end(), dim(1), std::multiplies<>());
  }

  void emit() {
    const channel_view image_at = materialize_channels(e, image);
    const std::int64_t taps = product(window), all_phases = product(op.strides);
    // Weights are [window..., features of a group, channels].
    const open_panels right(e,
                            {weights,
                             {op.groups},
                             columns,
                             taps * channels,
                             axes,
                             [this](std::span<const Value> group, Value step, Value column) {
                               values at = code.delinearize(code.div(step, channels), window);
                               at.push_back(column);
                               at.push_back(code.add(code.mul(group[0], channels), code.rem(step, channels)));
                               return at;
                             }},
                            tile);
    const pixel_reader reader(e, image_at, in, channels, true);
    const std::int64_t item_pixels = tile.rows * tiles_per_item;
    e.parallel_open(
        "transposed_convolution", {op.groups, all_phases, (pixels + item_pixels - 1) / item_pixels},
        std::max<std::int64_t>(1, item_pixels * columns * taps * channels / all_phases / tile.lanes),
        [&](std::span<const Value> at) {
          const open_tile_store store(e, tile, accumulation, columns);
          const position_list list(e, tile.rows, places.size());
          group = at[0];
          read_phase(at[1]);
          const Value first = code.mul(at[2], item_pixels), last = e.min(code.add(first, item_pixels), pixels);
          const values indices = e.delinearize(first, places);
          code.loop(code.constant(0), e.size(right.count()), 1, [&](Value panel) {
            code.loop(first, last, tile.rows, indices, [&](Value pixel, std::span<const Value> at_pixel) {
              auto outputs = pixel_positions(e, pixel, values(at_pixel.begin(), at_pixel.end()), tile.rows + 1, places);
              values next = std::move(outputs.back());
              outputs.pop_back();
              emit_tile(right, reader, pixel, outputs, panel, store, list);
              return next;
            });
          });
        });
  }

 private:
  static std::int64_t product(std::span<const std::int64_t> numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{1}, std::multiplies<>());
  }

  Value read(const std::vector<double>& numbers, Value index) {
    return code.load(e.table(code.index_element(), numbers), index, code.index_element(), 1);
  }
  void read_phase(Value number) {
    phase = code.delinearize(number, op.strides);
    taps_of_axis.clear(), first_window.clear(), first_offset.clear();
    for (std::size_t i = 0; i < axes; ++i) {
      taps_of_axis.push_back(read(phases[i].taps, phase[i]));
      first_window.push_back(read(phases[i].window, phase[i]));
      first_offset.push_back(read(phases[i].offset, phase[i]));
    }
  }

  void emit_tile(const open_panels& right, const pixel_reader& reader, Value first, const std::vector<values>& outputs,
                 Value panel, const open_tile_store& store, const position_list& list) {
    list.set(outputs);
    std::vector<pixel_reader::origin> origins;
    for (const values& position : outputs)
      origins.push_back(reader.from(position[0], {position.begin() + 1, position.end()}, code.mul(group, channels)));
    const std::array<Value, 1> of_group{group};
    const open_right panel_at = right.panel(of_group, panel);
    Value taps = code.constant(1);
    for (Value of_axis : taps_of_axis) taps = code.mul(taps, of_axis);
    const values sums = code.loop(
        code.constant(0), taps, 1, zero_tile(code, tile, accumulation), [&](Value tap, std::span<const Value> so_far) {
          // The place of the tap in the window, and how far from t it reads.
          Value of_window = code.constant(0), left_of = tap;
          std::int64_t window_stride = 1;
          values distance(axes);
          for (std::size_t i = axes; i-- > 0; window_stride *= window[i]) {
            const Value index = i == 0 ? left_of : code.rem(left_of, taps_of_axis[i]);
            if (i > 0) left_of = code.div(left_of, taps_of_axis[i]);
            const Value w = code.add(first_window[i], code.mul(index, phases[i].window_step));
            of_window = code.add(of_window, code.mul(w, window_stride));
            distance[i] = code.sub(first_offset[i], code.mul(index, phases[i].offset_step));
          }
          open_left left{image_type, {}, code.constant(1)};
          const pixel_reader::step step = reader.by(distance);
          for (const pixel_reader::origin& from : origins) left.rows.push_back(reader.address(from, step));
          open_right of_tap = panel_at;
          of_tap.offset = code.add(of_tap.offset, code.mul(of_window, channels * tile.columns()));
          return open_sums(code, tile, left, of_tap, code.constant(channels), accumulation,
                           values(so_far.begin(), so_far.end()));
        });
    const Value first_column = code.mul(panel, tile.columns());
    const Value rows = code.min(code.sub(e.size(pixels), first), tile.rows),
                here = code.min(code.sub(code.constant(columns), first_column), tile.columns());
    store.write(sums, rows, here, right.whole(), [&](Value row, const span_part& part, Value computed) {
      const values position = list.at(row);
      values at{position[0]};
      Value inside;
      for (std::size_t i = 0; i < axes; ++i) {
        at.push_back(code.add(code.mul(position[1 + i], op.strides[i]), phase[i]));
        if (codegen::known_factor(out[i]) % op.strides[i] == 0) continue;
        const Value before_end = code.less(at.back(), e.size(out[i]));
        inside = inside ? code.make<mlir::arith::AndIOp>(inside, before_end).getResult() : before_end;
      }
      at.push_back(code.add(code.add(code.mul(group, columns), first_column), part.first));
      const auto write = [&] {
        evaluator ev(e);
        ev.bind(e.anchor_result(), to_result(code, computed, accumulation, result.type));
        ev.store_outputs(at, part.lanes);
      };
      if (inside) code.when(inside, write);
      else write();
    });
  }

  kernel_emitter& e;
  code_builder& code;
  const transposed_convolution& op;
  value image, weights;
  shape result;
  element_type accumulation, image_type = image.type().type;
  tile_shape tile;
  std::size_t axes = 0;
  // `steps` are the outputs of one phase; the last one may be outside of the result. `places`: batch and `steps`.
  std::vector<dim> in, out, steps, places;
  std::vector<std::int64_t> window;
  std::vector<phase_table> phases;
  // Of one group.
  std::int64_t channels = 1, columns = 1;
  dim pixels;  // of one phase of all images
  // Of the work item: indices, and the taps of its phase along each axis.
  Value group;
  values phase, taps_of_axis, first_window, first_offset;
};

}  // namespace

void emit_open_transposed_convolution(kernel_emitter& e) { open_transposed(e).emit(); }

bool opens_transposed_convolution(const instruction& anchor) {
  const auto& op = *anchor.op().get_if<transposed_convolution>();
  return op.layout == tensor_layout::channels_last && anchor.inputs()[1].type().is_static() &&
         anchor.inputs()[0].type().dims.back().is_static();
}

}  // namespace kiln::cpu
