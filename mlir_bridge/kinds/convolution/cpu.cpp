// Convolution of channels_last images. Output pixels of a line are the rows of tiles, output channels the columns.
#include <functional>
#include <limits>
#include <numeric>

#include "ir/error.hpp"
#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/channel_view.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/matrix_tile.hpp"
#include "mlir_bridge/cpu/contraction/packing.hpp"
#include "mlir_bridge/kinds/convolution/cpu/depthwise.hpp"
#include "mlir_bridge/kinds/convolution/cpu/image.hpp"
#include "mlir_bridge/kinds/convolution/cpu/winograd.hpp"
#include "mlir_bridge/kinds/convolution/generators.hpp"

namespace kiln::cpu {

namespace {

// Lines of at least about this many pixels that fill tiles well are not joined.
constexpr std::int64_t joined_line = 14;

std::int64_t product(std::span<const std::int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

void require_channels_last(const kernel_emitter& e, tensor_layout layout) {
  if (layout != tensor_layout::channels_last)
    throw error(error_kind::unsupported,
                "kernel '" + e.symbol + "' holds a " + std::string(e.anchor()->op().name()) +
                    " in channels_first layout; kernels take channels_last (the layout pass makes it so)");
}

// Returns the distance between two pixels of an image in memory.
std::int64_t pixel_bytes(const kernel_emitter& e, value image) {
  const std::optional<channel_view> view = find_channels(e, image);
  const std::int64_t channels = view ? view->pitch() : e.dims(image).back();
  return channels * static_cast<std::int64_t>(storage_bytes(image.type().type, 1));
}

// Returns how many groups to compute as one group, with zeros as weights between them. Small groups would leave most
// lanes of a vector empty.
std::int64_t merged_groups(const kernel_emitter& e, std::int64_t groups, std::int64_t features, element_type type) {
  std::int64_t best = 1;
  for (std::int64_t q = 2; q <= groups && q * features <= register_lanes(e, accumulation_type(type)); ++q)
    if (groups % q == 0) best = q;
  return best;
}

// Returns [batch, outputs..., channels] without the channels.
values image_position(Value batch, std::span<const Value> outputs) {
  values where{batch};
  where.insert(where.end(), outputs.begin(), outputs.end());
  return where;
}

// Adds the candidates of emit_winograd to those of the direct sum.
std::vector<candidate> with_winograd(std::vector<candidate> direct) {
  // Products are 16 instead of 36, and transformations take some of what that saves.
  constexpr double share = 0.6;
  double least = std::numeric_limits<double>::max();
  for (candidate& c : direct) {
    c.configuration["winograd"] = 0;
    least = std::min(least, c.cost);
  }
  double cost = share * least;
  for (std::int64_t patches : {12, 24, 48, 112}) {
    direct.push_back({{{"winograd", 1}, {"patches", patches}}, cost});
    cost *= 1.05;
  }
  return direct;
}

}  // namespace

void emit_convolution(kernel_emitter& e) {
  const convolution& op = *e.anchor()->op().get_if<convolution>();
  require_channels_last(e, op.layout);
  const value image = e.anchor()->inputs()[0], weights = e.anchor()->inputs()[1];
  const std::vector<std::int64_t> in = e.dims(image), filter = e.dims(weights), out = e.dims(e.anchor_result());
  const std::size_t spatial = in.size() - 2;
  if (product(out) == 0) return;
  const std::int64_t channels_of_group = in.back() / op.groups, features_of_group = out.back() / op.groups;
  if (suits_depthwise(e)) return emit_depthwise(e);
  if (suits_winograd(e) && choose(e.configuration, "winograd", 1)) return emit_winograd(e);
  const std::int64_t merged = merged_groups(e, op.groups, features_of_group, image.type().type);
  const std::int64_t channels = channels_of_group * merged, features = features_of_group * merged;

  contraction c;
  c.batches = in[0];
  c.groups = op.groups / merged;
  c.columns = features;
  c.result_group_columns = features;
  bool pointwise = op.groups == 1;
  for (std::size_t i = 0; i < spatial; ++i) {
    c.axes.push_back(
        convolution_axis(in[1 + i], out[1 + i], filter[i], op.strides[i], op.dilations[i], op.pads_begin[i]));
    pointwise &= filter[i] == 1 && op.strides[i] == 1 && op.pads_begin[i] == 0 && op.pads_end[i] == 0;
  }
  c.locate = [](Value batch, Value, std::span<const Value> outputs) { return image_position(batch, outputs); };
  if (pointwise) {
    // All lines of all images are computed alike. Short lines are joined: a tile may then extend over the end of a
    // line, and the position of each row is computed separately.
    const std::vector<std::int64_t> pixels(out.begin(), out.end() - 1);
    const std::int64_t line = pixels.back(), lines = product(pixels) / line;
    const bool join = choose(e.configuration, "join", line < joined_line || line % joined_line > joined_line / 2) != 0;
    if (join) c.axes = {convolution_axis(lines * line, lines * line, 1, 1, 1, 0)};
    else c.axes = {convolution_axis(lines, lines, 1, 1, 1, 0), convolution_axis(line, line, 1, 1, 1, 0)};
    c.batches = 1;
    c.locate = [&e, pixels](Value, Value, std::span<const Value> outputs) {
      if (outputs.size() == 1) return e.code.delinearize(outputs[0], pixels);
      values where = e.code.delinearize(outputs[0], std::span(pixels).first(pixels.size() - 1));
      where.push_back(outputs[1]);
      return where;
    };
  }

  const element_type accumulation = accumulation_type(image.type().type);
  const std::int64_t line = c.axes.back().outputs();
  c.by_lane =
      worthwhile(e, find_lane_products(e.target, image.type().type, weights.type().type), line, features, channels);
  c.steps = steps_of(c.by_lane, channels);
  const std::optional<tile_shape> matrix = choose_matrix_tile(e, c.by_lane, line, features, c.steps);
  if (matrix) c.matrix = true, c.steps = matrix_steps_of(c.steps);
  const tile_shape tile = matrix
                              ? *matrix
                              : choose_tile(e, line, features, accumulation, op.strides.back() * pixel_bytes(e, image),
                                            loads_of(e.target, accumulation, true, c.by_lane));
  c.rows = tile.rows;
  c.unroll = choose(e.configuration, "unroll", 1);
  const std::vector<std::int64_t> window(filter.begin(), filter.end() - 2);
  right_source source{.tensor = weights, .column_axis = static_cast<std::int64_t>(spatial + 1)};
  source.locate = [&](Value group, Value tap, Value step, Value column) {
    values where = e.code.delinearize(tap, window);
    where.push_back(merged > 1 ? e.code.rem(step, channels_of_group) : step);
    where.push_back(e.code.add(e.code.mul(group, features), column));
    return where;
  };
  if (merged > 1)
    source.counts = [&](Value step, Value columns) {
      return e.code.equal(e.code.splat(e.code.div(step, channels_of_group), code_builder::lanes_of(columns)),
                          e.code.div(columns, features_of_group));
    };
  if (c.by_lane) pack_right_lanes(e, c, product(window), channels, tile, source);
  else pack_right(e, c, product(window), tile, source);
  set_image(e, c, image);
  choose_items(e, c);
  emit_contraction(e, c);
}

std::vector<candidate> convolution_space(kernel_emitter& e) {
  const convolution& op = *e.anchor()->op().get_if<convolution>();
  const value image = e.anchor()->inputs()[0];
  const std::vector<std::int64_t> in = e.dims(image), filter = e.dims(e.anchor()->inputs()[1]),
                                  out = e.dims(e.anchor_result());
  if (product(out) * product(in) == 0) return {};
  if (suits_depthwise(e)) return depthwise_space(e, *e.anchor());
  const std::int64_t merged = merged_groups(e, op.groups, out.back() / op.groups, image.type().type),
                     groups = op.groups / merged;
  contraction_extents x{.lines = product(out) / out.back() / out[out.size() - 2] * groups,
                        .rows = out[out.size() - 2],
                        .columns = out.back() / groups,
                        .steps = in.back() / groups,
                        .loads = loads_of(e.target, accumulation_type(image.type().type), true)};
  const std::int64_t taps = product(std::span(filter).first(filter.size() - 2));
  const auto by_lane =
      worthwhile(e, find_lane_products(e.target, image.type().type, e.anchor()->inputs()[1].type().type), x.rows,
                 x.columns, x.steps * merged);
  if (by_lane) {
    x.steps = steps_of(by_lane, x.steps * merged);
    x.loads = loads_of(e.target, accumulation_type(image.type().type), true, by_lane);
  }
  x.products = x.steps * taps;
  std::vector<candidate> result = blocking_space(e, x, image.type().type);
  if (choose_matrix_tile(e, by_lane, x.rows, x.columns, x.steps)) return with_matrix_tile(std::move(result));
  if (suits_winograd(e)) return with_winograd(std::move(result));
  if (taps > 1 || op.groups > 1) return result;
  // A batch of 1x1 images is treated as one line of pixels. Tiles that end at the end of a line stay the same.
  const std::int64_t line = x.rows;
  x.rows *= x.lines, x.lines = 1;
  for (candidate& c : result) c.configuration["join"] = 0;
  for (candidate& c : blocking_space(e, x, image.type().type)) {
    if (line % c.configuration.at("tile_m") == 0) continue;
    c.configuration["join"] = 1;
    result.push_back(std::move(c));
  }
  return result;
}

std::vector<candidate> transposed_convolution_space(kernel_emitter& e) {
  const transposed_convolution& op = *e.anchor()->op().get_if<transposed_convolution>();
  const std::vector<std::int64_t> in = e.dims(e.anchor()->inputs()[0]), filter = e.dims(e.anchor()->inputs()[1]),
                                  out = e.dims(e.anchor_result());
  if (product(out) * product(in) == 0) return {};
  const std::int64_t stride = product(op.strides), steps = in.back() / op.groups,
                     taps = std::max<std::int64_t>(1, product(std::span(filter).first(filter.size() - 2)) / stride);
  const element_type type = e.anchor()->inputs()[0].type().type;
  contraction_extents x{.lines = product(out) / out.back() / out[out.size() - 2] * op.strides.back() * op.groups,
                        .rows = std::max<std::int64_t>(1, out[out.size() - 2] / op.strides.back()),
                        .columns = out.back() / op.groups,
                        .steps = steps,
                        .products = steps * taps,
                        .loads = loads_of(e.target, accumulation_type(type), true)};
  return blocking_space(e, x, type);
}

void emit_transposed_convolution(kernel_emitter& e) {
  const transposed_convolution& op = *e.anchor()->op().get_if<transposed_convolution>();
  require_channels_last(e, op.layout);
  const value image = e.anchor()->inputs()[0], weights = e.anchor()->inputs()[1];
  const std::vector<std::int64_t> in = e.dims(image), filter = e.dims(weights), out = e.dims(e.anchor_result());
  const std::size_t spatial = in.size() - 2;
  const std::int64_t channels = in.back() / op.groups, features = out.back() / op.groups;
  if (product(out) == 0) return;

  contraction c;
  c.batches = in[0];
  c.groups = op.groups;
  c.steps = channels;
  c.columns = features;
  c.result_group_columns = features;
  for (std::size_t i = 0; i < spatial; ++i)
    c.axes.push_back(
        transposed_axis(in[1 + i], out[1 + i], filter[i], op.strides[i], op.dilations[i], op.pads_begin[i]));
  c.locate = [](Value batch, Value, std::span<const Value> outputs) { return image_position(batch, outputs); };

  const element_type accumulation = accumulation_type(image.type().type);
  const tile_shape tile = choose_tile(e, c.axes.back().outputs(), features, accumulation, pixel_bytes(e, image),
                                      loads_of(e.target, accumulation, true));
  c.rows = tile.rows;
  c.unroll = choose(e.configuration, "unroll", 1);
  const std::vector<std::int64_t> window(filter.begin(), filter.end() - 2);
  // Weights are [window..., features of a group, channels].
  pack_right(e, c, product(window), tile,
             {weights, static_cast<std::int64_t>(spatial), [&](Value group, Value tap, Value step, Value column) {
                values where = e.code.delinearize(tap, window);
                where.push_back(column);
                where.push_back(e.code.add(e.code.mul(group, channels), step));
                return where;
              }});
  set_image(e, c, image);
  choose_items(e, c);
  emit_contraction(e, c);
}

}  // namespace kiln::cpu
