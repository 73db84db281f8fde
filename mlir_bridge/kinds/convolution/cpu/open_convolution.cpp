// Convolutions of images of open sizes, channels last. The pixels of the result are the rows of tiles, the channels of
// a group the columns. A tap in the padding reads from a pixel of zeros, so the image is not copied.
#include <array>
#include <numeric>

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/channel_view.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/cpu/contraction/open_panels.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
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
        accumulation(accumulation_type(image.type().type)),
        tile(open_tile(e, accumulation)) {
    const auto& of_image = image.type().dims;
    const auto& of_weights = weights.type().dims;
    axes = op.strides.size();
    in.assign(of_image.begin() + 1, of_image.end() - 1);
    out.assign(result.dims.begin() + 1, result.dims.end() - 1);
    for (std::size_t i = 0; i < axes; ++i) window.push_back(of_weights[i].value());
    taps = std::accumulate(window.begin(), window.end(), std::int64_t{1}, std::multiplies<>());
    channels = of_weights[axes].value();
    columns = of_weights[axes + 1].value() / op.groups;
    pixels = std::accumulate(out.begin(), out.end(), dim(1), std::multiplies<>());
  }

  void emit() {
    image_at = materialize_channels(e, image);
    if (channels == 1 && columns == 1 && op.groups > 1) return emit_depthwise();
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
    e.parallel_open("convolution", {result.dims[0], op.groups, (pixels + item_pixels - 1) / item_pixels},
                    item_pixels * columns * taps * channels / tile.lanes, [&](std::span<const Value> at) {
                      const open_tile_store store(e, tile, accumulation);
                      const Value first = code.mul(at[2], item_pixels),
                                  last = e.min(code.add(first, item_pixels), pixels);
                      code.loop(code.constant(0), e.size(right.count()), 1, [&](Value panel) {
                        code.loop(first, last, tile.rows,
                                  [&](Value pixel) { emit_tile(right, at[0], at[1], pixel, panel, store); });
                      });
                    });
  }

 private:
  // Returns the output positions of `count` pixels from `first` on. Positions beyond the last one repeat the last one.
  std::vector<values> positions(Value first, std::int64_t count) {
    std::vector<values> result{e.delinearize(first, out)};
    const Value last_pixel = e.size(pixels - 1);
    for (std::int64_t i = 1; i < count; ++i) {
      values next = result.back();
      Value carry = code.select(code.less(code.add(first, i - 1), last_pixel), code.constant(1), code.constant(0));
      for (std::size_t axis = axes; axis-- > 0;) {
        const Value moved = code.add(next[axis], carry);
        if (axis == 0) {
          next[axis] = moved;
          break;
        }
        const Value wraps = code.equal(moved, e.size(out[axis]));
        next[axis] = code.select(wraps, code.constant(0), moved);
        carry = code.select(wraps, code.constant(1), code.constant(0));
      }
      result.push_back(std::move(next));
    }
    return result;
  }

  bool padded() const {
    for (std::size_t i = 0; i < axes; ++i)
      if (op.pads_begin[i] != 0 || op.pads_end[i] != 0) return true;
    return false;
  }

  // Returns the address of a group's first channel at the position that a tap reads, or of zeros if it is in the
  // padding.
  Value tap_address(Value batch, const values& position, const values& tap, Value first_channel) {
    Value inside;
    values at{batch};
    for (std::size_t i = 0; i < axes; ++i) {
      const Value place = code.add(code.add(code.mul(position[i], op.strides[i]), code.mul(tap[i], op.dilations[i])),
                                   -op.pads_begin[i]);
      at.push_back(place);
      if (!padded()) continue;
      const Value here =
          code.make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult, place, e.size(in[i])).getResult();
      inside = inside ? code.make<mlir::arith::AndIOp>(inside, here).getResult() : here;
    }
    at.push_back(code.add(first_channel, image_at.first));
    const buffer& memory = image_at.memory;
    const Value address = code.address(e.pointer(memory), offset_in(e, memory, at), memory.type);
    return inside ? code.select(inside, address, zeros()) : address;
  }
  Value zeros() {
    const std::int64_t count = channels == 1 ? op.groups : channels;
    return e.table(image_at.memory.type, std::vector<double>(static_cast<std::size_t>(count), 0.0));
  }

  void emit_tile(const open_panels& right, Value batch, Value group, Value first, Value panel,
                 const open_tile_store& store) {
    const auto outputs = positions(first, tile.rows);
    const Value first_channel = code.mul(group, channels);
    const std::array<Value, 1> of_group{group};
    const open_right panel_at = right.panel(of_group, panel);
    const values sums = code.loop(code.constant(0), code.constant(taps), 1, zero_tile(code, tile, accumulation),
                                  [&](Value tap, std::span<const Value> so_far) {
                                    const values digits = code.delinearize(tap, window);
                                    open_left left{image_at.memory.type, {}, code.constant(1)};
                                    for (const values& position : outputs)
                                      left.rows.push_back(tap_address(batch, position, digits, first_channel));
                                    open_right of_tap = panel_at;
                                    of_tap.offset = code.add(of_tap.offset, code.mul(tap, channels * tile.columns()));
                                    return open_sums(code, tile, left, of_tap, code.constant(channels), accumulation,
                                                     values(so_far.begin(), so_far.end()));
                                  });
    const Value first_column = code.mul(panel, tile.columns());
    const Value rows = code.min(code.sub(e.size(pixels), first), tile.rows),
                here = code.min(code.sub(code.constant(columns), first_column), tile.columns());
    store.write(sums, rows, here, right.whole(), [&](Value row, const span_part& part, Value computed) {
      values at{batch};
      for (Value index : e.delinearize(code.add(first, row), out)) at.push_back(index);
      at.push_back(code.add(code.add(code.mul(group, columns), first_column), part.first));
      write(at, computed, part.lanes);
    });
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
        "depthwise", {result.dims[0], (pixels + item_pixels - 1) / item_pixels},
        item_pixels * op.groups * taps / tile.lanes, [&](std::span<const Value> at) {
          const Value first = code.mul(at[1], item_pixels), last = e.min(code.add(first, item_pixels), pixels);
          code.loop(first, last, depthwise_pixels, [&](Value pixel) { emit_pixels(weights_at, at[0], pixel, last); });
        });
  }

  void emit_pixels(const buffer& weights_at, Value batch, Value first, Value last) {
    const auto outputs = positions(first, depthwise_pixels);
    const open_span span(e, code.constant(0), code.constant(op.groups), tile.lanes, tile.lanes,
                         op.groups % tile.lanes == 0);
    span.walk([&](const span_part& part) {
      const values sums = code.loop(
          code.constant(0), code.constant(taps), 1,
          values(outputs.size(), code.number(code.type(accumulation, part.lanes), 0)),
          [&](Value tap, std::span<const Value> so_far) {
            const values digits = code.delinearize(tap, window);
            const Value weight = widen(code,
                                       code.load(e.pointer(weights_at), code.add(code.mul(tap, op.groups), part.first),
                                                 weights_at.type, part.lanes),
                                       weights_at.type, accumulation);
            values next;
            for (std::size_t i = 0; i < outputs.size(); ++i) {
              const Value from = tap_address(batch, outputs[i], digits, code.constant(0));
              const element_type stored = image_at.memory.type;
              const Value x = widen(code, code.load(from, part.first, stored, part.lanes), stored, accumulation);
              next.push_back(is_float(accumulation) ? code.fma(x, weight, so_far[i])
                                                    : code.add(code.mul(x, weight), so_far[i]));
            }
            return next;
          });
      for (std::size_t i = 0; i < outputs.size(); ++i)
        code.when(code.less(code.add(first, static_cast<std::int64_t>(i)), last), [&] {
          values at{batch};
          at.insert(at.end(), outputs[i].begin(), outputs[i].end());
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
  std::vector<dim> in, out;
  std::vector<std::int64_t> window;
  // Of one group.
  std::int64_t taps = 1, channels = 1, columns = 1;
  dim pixels;
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
