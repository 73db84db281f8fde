#include "mlir_bridge/kinds/convolution/cpu/winograd.hpp"

#include <algorithm>
#include <array>

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/channel_view.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

// A patch is 4×4 pixels of the image, from which 2×2 pixels of the result are computed. Patches overlap.
constexpr std::int64_t side = 4, pixels = 2, window = 3, factors = side * side;
// Below this many channels, the transformations cost about as much as the products that they save.
constexpr std::int64_t fewest_channels = 32;
// Numbers of patches of a block. A few patches stay in near caches with their transforms and sums. Many patches read
// the weights less often, which is faster if the weights are large_weights times the size of the second-level cache.
constexpr std::int64_t few_patches = 12, many_patches = 112, large_weights = 8;
// Fewer patches do not use large weights often enough.
constexpr std::int64_t fewest_uses = 24;
// On targets with even_registers vector registers, which hold the sums of 14 rows and two vectors of columns: images of
// 14, 28 and 56 pixels have a whole number of such blocks, which threads share evenly.
constexpr std::int64_t even_patches = 14, even_registers = 32;
// Each item has scratch memory of its own, so there are at most this many, of at most so many bytes together. More work
// is done by the same items.
constexpr std::int64_t most_items = 64, most_scratch_bytes = std::int64_t{128} << 20;
constexpr std::int64_t item_products = 1 << 21;
// An item computes at least this many columns, because each item transforms its patches anew.
constexpr std::int64_t fewest_columns = 64;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct extents {
  explicit extents(const kernel_emitter& e) {
    const std::vector<dim>&in = kernel_emitter::sizes(e.anchor()->inputs()[0]),
          &out = kernel_emitter::sizes(e.anchor_result());
    batches = in[0], in_height = in[1], in_width = in[2], channels = in[3].value();
    height = out[1], width = out[2], features = out[3].value();
    patch_rows = (height + pixels - 1) / pixels, patch_columns = (width + pixels - 1) / pixels;
    patches = batches * patch_rows * patch_columns;
  }
  dim batches, in_height, in_width, height, width;
  std::int64_t channels, features;
  dim patch_rows, patch_columns, patches;
};

// How blocks of patches and panels of columns are divided among work items.
struct division {
  std::int64_t panels_of_group;
  dim blocks, all, of_item, items;
};

std::int64_t patches_at_once(const kernel_emitter& e, const extents& n) {
  const std::int64_t weight_bytes = factors * n.channels * n.features * static_cast<std::int64_t>(sizeof(float));
  if (weight_bytes > large_weights * e.target.l2_bytes) return many_patches;
  return e.target.vector_registers >= even_registers ? even_patches : few_patches;
}

class winograd_emitter {
 public:
  explicit winograd_emitter(kernel_emitter& emitter) : e(emitter), code(emitter.code), n(emitter) {
    const convolution& op = *e.anchor()->op().get_if<convolution>();
    pad_top = op.pads_begin[0], pad_left = op.pads_begin[1];
    const std::int64_t standard = patches_at_once(e, n), most = n.patches.is_static() ? n.patches.value() : standard,
                       wanted = std::clamp<std::int64_t>(choose(e.configuration, "patches", standard), 1, most),
                       even = n.patches.is_static() ? ceil_div(most, ceil_div(most, wanted)) : wanted;
    tile = choose_tile(e, even, n.features, type, n.channels * static_cast<std::int64_t>(sizeof(float)),
                       loads_of(e.target, type, true));
    block = ceil_div(even, tile.rows) * tile.rows;
    panels = ceil_div(n.features, tile.columns());
    image_pitch = block * n.channels + tile.lanes;
    product_pitch = block * tile.columns() + tile.lanes;
  }

  // `used` is an expression of the open sizes: 1 where this algorithm computes the result, 0 where another one does.
  void emit(const dim& used) {
    transform_weights();
    image = materialize_channels(e, e.anchor()->inputs()[0]);
    const auto [panels_of_group, blocks, all, of_item, items] = divide();
    const std::int64_t groups = ceil_div(panels, panels_of_group);
    const buffer patches = e.add_open_scratch(type, {items * used, factors, image_pitch}),
                 products = e.add_open_scratch(type, {items * used, factors, product_pitch});
    e.begin_stage("winograd", items * used);
    e.keep_loops();
    pixel_pointer = e.pointer(image.memory), weight_pointer = e.pointer(weights);
    patch_pointer = e.pointer(patches), product_pointer = e.pointer(products);
    const bool light = epilogue_cost(e) <= light_epilogue;
    if (!light) results = code.stack(type, pixels * pixels * tile.lanes);
    // All items of a call use the memory of the first one, so that it stays in near caches.
    patch_offset = code.mul(e.begin(), factors * image_pitch);
    product_offset = code.mul(e.begin(), factors * product_pitch);
    code.loop(e.begin(), e.end(), 1, [&](Value item) {
      Value first = e.mul(item, of_item), last = e.min(e.add(first, of_item), all);
      code.loop(first, last, 1, [&](Value part) {
        const values digits = e.delinearize(part, std::vector<dim>{blocks, groups});
        first_patch = code.mul(digits[0], block);
        transform_patches();
        Value panel = code.mul(digits[1], panels_of_group);
        code.loop(panel, code.min(code.add(panel, panels_of_group), panels), 1, [&](Value panel) {
          multiply(panel);
          transform_products(panel);
        });
      });
    });
    e.end_stage();
  }

 private:
  division divide() const {
    const std::int64_t most_groups = std::clamp<std::int64_t>(panels * tile.columns() / fewest_columns, 1, panels),
                       scratch_bytes = factors * (image_pitch + product_pitch) * std::int64_t{sizeof(float)},
                       room = std::clamp<std::int64_t>(most_scratch_bytes / scratch_bytes, 1, most_items);
    division d;
    if (n.patches.is_static()) {
      const std::int64_t patches = n.patches.value(), blocks = ceil_div(patches, block),
                         wanted = std::clamp<std::int64_t>(factors * patches * n.channels * n.features / item_products,
                                                           1, most_items);
      d.panels_of_group = ceil_div(panels, std::clamp(ceil_div(wanted, blocks), std::int64_t{1}, most_groups));
      const std::int64_t all = blocks * ceil_div(panels, d.panels_of_group), of_item = ceil_div(all, room);
      d.blocks = blocks, d.all = all, d.of_item = of_item, d.items = ceil_div(all, of_item);
      return d;
    }
    // A small image has few blocks, which are divided in two where there are columns for it.
    d.panels_of_group = ceil_div(panels, std::min<std::int64_t>(2, most_groups));
    d.blocks = (n.patches + block - 1) / block;
    d.all = d.blocks * ceil_div(panels, d.panels_of_group);
    d.of_item = dim::max(1, (d.all + room - 1) / room);
    d.items = (d.all + d.of_item - 1) / d.of_item;
    return d;
  }

  Value plus(Value a, Value b) { return code.make<arith::AddFOp>(a, b); }
  Value minus(Value a, Value b) { return code.make<arith::SubFOp>(a, b); }

  // Emits the stage that writes the transformed weights G g Gᵀ as [panel, factor, channel, column of the panel].
  void transform_weights() {
    const value of = e.anchor()->inputs()[1];
    const std::int64_t columns = tile.columns();
    weights = e.add_scratch(type, {panels, factors, n.channels, columns}, true);
    e.parallel(
        "weights", {panels, n.channels}, factors * columns,
        [&](std::span<const Value> at) {
          e.keep_loops();
          Value to = e.pointer(weights);
          code.loop(0, columns, tile.lanes, [&](Value within) {
            Value column = code.add(code.mul(at[0], columns), within);
            evaluator ev(e);
            std::array<std::array<Value, window>, window> g;
            for (std::int64_t i = 0; i < window; ++i)
              for (std::int64_t j = 0; j < window; ++j) {
                const values where{code.constant(i), code.constant(j), at[1],
                                   code.min(column, n.features - tile.lanes)};
                g[i][j] = ev.element(of, where, tile.lanes);
              }
            Value zero = code.number(g[0][0].getType(), 0), exists = code.less(column, code.constant(n.features));
            auto transform = [&](Value a, Value b, Value c) {
              Value half = code.number(a.getType(), 0.5), outer = plus(a, c);
              return std::array<Value, side>{a, code.make<arith::MulFOp>(plus(outer, b), half),
                                             code.make<arith::MulFOp>(minus(outer, b), half), c};
            };
            std::array<std::array<Value, side>, window> rows;
            for (std::int64_t i = 0; i < window; ++i) rows[i] = transform(g[i][0], g[i][1], g[i][2]);
            for (std::int64_t j = 0; j < side; ++j) {
              const std::array<Value, side> column_of = transform(rows[0][j], rows[1][j], rows[2][j]);
              for (std::int64_t i = 0; i < side; ++i) {
                Value offset =
                    code.linearize(values{at[0], code.constant(i * side + j), at[1], within}, weights.dims());
                code.store(to, offset, type, code.select(exists, column_of[i], zero));
              }
            }
          });
        },
        true);
  }

  // Returns the batch, row and column of a patch.
  values locate(Value patch) {
    return e.delinearize(patch, std::vector<dim>{n.batches, n.patch_rows, n.patch_columns});
  }

  // Transforms the patches of the block, Bᵀ d B, to [factor, patch, channel].
  void transform_patches() {
    code.loop(0, block, 1, [&](Value i) {
      const values at = locate(e.min(code.add(first_patch, i), n.patches - 1));
      Value top = code.sub(code.mul(at[1], pixels), pad_top), left = code.sub(code.mul(at[2], pixels), pad_left);
      Value inside;
      auto require = [&](Value condition) {
        inside = inside ? Value(code.make<arith::AndIOp>(inside, condition)) : condition;
      };
      auto check = [&](Value begin, std::int64_t pad, const dim& count, const dim& extent) {
        if (pad > 0) require(code.less(code.constant(-1), begin));
        const dim beyond = (count - 1) * pixels - pad + side - extent;
        if (!beyond.is_static() || beyond.value() > 0) require(code.less(begin, e.size(extent - side + 1)));
      };
      check(top, pad_top, n.patch_rows, n.in_height);
      check(left, pad_left, n.patch_columns, n.in_width);
      if (!inside) return transform_patch(i, at[0], top, left, false);
      code.branch(
          inside,
          [&] {
            transform_patch(i, at[0], top, left, false);
            return values{};
          },
          [&] {
            transform_patch(i, at[0], top, left, true);
            return values{};
          });
    });
  }

  // `clip`: pixels outside of the image are zero.
  void transform_patch(Value patch, Value batch, Value top, Value left, bool clip) {
    struct line {
      Value position, inside;
    };
    auto lines = [&](Value begin, const dim& extent) {
      std::array<line, side> all;
      for (std::int64_t i = 0; i < side; ++i) {
        Value position = code.add(begin, i);
        all[i] = {position, {}};
        if (!clip) continue;
        all[i].inside =
            code.make<arith::AndIOp>(code.less(code.constant(-1), position), code.less(position, e.size(extent)));
        all[i].position = e.min(code.max(position, 0), extent - 1);
      }
      return all;
    };
    const std::array<line, side> rows = lines(top, n.in_height), columns = lines(left, n.in_width);
    const std::int64_t lanes = tile.lanes;
    code.loop(0, n.channels, lanes, [&](Value channel) {
      auto transform = [&](const std::array<Value, side>& d) {
        return std::array<Value, side>{minus(d[0], d[2]), plus(d[1], d[2]), minus(d[2], d[1]), minus(d[1], d[3])};
      };
      std::array<std::array<Value, side>, side> across;
      for (std::int64_t i = 0; i < side; ++i) {
        std::array<Value, side> d;
        for (std::int64_t j = 0; j < side; ++j) {
          Value pixel =
              code.add(e.mul(code.add(e.mul(batch, n.in_height), rows[i].position), n.in_width), columns[j].position);
          Value offset = code.add(code.add(code.mul(pixel, image.pitch()), image.first), channel);
          d[j] = code.load(pixel_pointer, offset, type, lanes);
          if (clip)
            d[j] = code.select(code.make<arith::AndIOp>(rows[i].inside, columns[j].inside), d[j],
                               code.number(d[j].getType(), 0));
        }
        across[i] = transform(d);
      }
      Value to = code.add(code.add(patch_offset, code.mul(patch, n.channels)), channel);
      for (std::int64_t j = 0; j < side; ++j) {
        const std::array<Value, side> down = transform({across[0][j], across[1][j], across[2][j], across[3][j]});
        for (std::int64_t i = 0; i < side; ++i)
          code.store(patch_pointer, code.add(to, (i * side + j) * image_pitch), type, down[i]);
      }
    });
  }

  // Multiplies the patches with a panel of the weights, to [factor, patch, column of the panel].
  void multiply(Value panel) {
    const std::int64_t columns = tile.columns();
    factor left{patch_pointer, type, n.channels, 1};
    left.steps_of_load = loads_of(e.target, type, true).steps;
    const factor right{weight_pointer, type, 0, columns};
    code.loop(0, factors, 1, [&](Value number) {
      Value right_offset = code.mul(code.add(code.mul(panel, factors), number), n.channels * columns);
      code.loop(0, block, tile.rows, [&](Value row) {
        Value left_offset = code.add(code.add(patch_offset, code.mul(number, image_pitch)), code.mul(row, n.channels));
        const values sums = accumulate(code, tile, {0, tile.rows}, left, left_offset, right, right_offset, n.channels,
                                       choose(e.configuration, "unroll", 1), type, zero_tile(code, tile, type));
        Value to = code.add(code.add(product_offset, code.mul(number, product_pitch)), code.mul(row, columns));
        for (std::size_t i = 0; i < sums.size(); ++i)
          code.store(product_pointer, code.add(to, static_cast<std::int64_t>(i) * tile.lanes), type, sums[i]);
      });
    });
  }

  // Computes the pixels of the patches, Aᵀ m A, and passes them to the epilogue.
  void transform_products(Value panel) {
    Value last = code.min(code.sub(e.size(n.patches), first_patch), block);
    code.loop(code.constant(0), last, 1, [&](Value patch) {
      const values at = locate(code.add(first_patch, patch));
      Value begin = code.mul(panel, tile.columns());
      Value end = code.min(code.sub(code.constant(n.features), begin), tile.columns());
      code.loop(code.constant(0), end, tile.lanes, [&](Value within) {
        Value from = code.add(code.add(product_offset, code.mul(patch, tile.columns())), within);
        auto transform = [&](const std::array<Value, side>& m) {
          return std::array<Value, pixels>{plus(plus(m[0], m[1]), m[2]), minus(minus(m[1], m[2]), m[3])};
        };
        std::array<std::array<Value, pixels>, side> across;
        for (std::int64_t i = 0; i < side; ++i) {
          std::array<Value, side> m;
          for (std::int64_t j = 0; j < side; ++j)
            m[j] = code.load(product_pointer, code.add(from, (i * side + j) * product_pitch), type, tile.lanes);
          across[i] = transform(m);
        }
        values sums(pixels * pixels);
        for (std::int64_t j = 0; j < pixels; ++j) {
          const auto down = transform({across[0][j], across[1][j], across[2][j], across[3][j]});
          for (std::int64_t i = 0; i < pixels; ++i) sums[static_cast<std::size_t>(i * pixels + j)] = down[i];
        }
        write(sums, at, code.add(begin, within));
      });
    });
  }

  void write(const values& sums, const values& patch, Value column) {
    auto store = [&](Value sum, Value i, Value j) {
      Value row = code.add(code.mul(patch[1], pixels), i), pixel = code.add(code.mul(patch[2], pixels), j);
      auto inside = [&] {
        evaluator ev(e);
        ev.bind(e.anchor_result(), sum);
        ev.store_outputs(values{patch[0], row, pixel, column}, tile.lanes);
      };
      Value exists;
      if (codegen::known_factor(n.height) % pixels) exists = code.less(row, e.size(n.height));
      if (codegen::known_factor(n.width) % pixels) {
        Value there = code.less(pixel, e.size(n.width));
        exists = exists ? Value(code.make<arith::AndIOp>(exists, there)) : there;
      }
      if (exists) code.when(exists, inside);
      else inside();
    };
    const std::int64_t count = pixels * pixels;
    if (!results) {
      for (std::int64_t i = 0; i < count; ++i)
        store(sums[static_cast<std::size_t>(i)], code.constant(i / pixels), code.constant(i % pixels));
      return;
    }
    for (std::int64_t i = 0; i < count; ++i)
      code.store(results, code.constant(i * tile.lanes), type, sums[static_cast<std::size_t>(i)]);
    code.loop(0, count, 1, [&](Value i) {
      store(code.load(results, code.mul(i, tile.lanes), type, tile.lanes), code.div(i, pixels), code.rem(i, pixels));
    });
  }

  static constexpr element_type type = element_type::f32;
  kernel_emitter& e;
  code_builder& code;
  const extents n;
  std::int64_t pad_top, pad_left;
  tile_shape tile;
  // Patches of a part, and panels of all columns.
  std::int64_t block, panels;
  // Elements from one factor to the next. Padding keeps the factors out of each other's cache sets.
  std::int64_t image_pitch, product_pitch;
  channel_view image;
  buffer weights;
  Value pixel_pointer, weight_pointer, patch_pointer, product_pointer;
  // The sums for a long epilogue, whose code is emitted once, in memory; null if the epilogue is short.
  Value results;
  // Of the current item.
  Value patch_offset, product_offset, first_patch;
};

}  // namespace

namespace {

// Returns true for a window and channels for which there is such a product.
bool has_winograd(const kernel_emitter& e) {
  const convolution& op = *e.anchor()->op().get_if<convolution>();
  const value image = e.anchor()->inputs()[0], weights = e.anchor()->inputs()[1];
  const std::vector<std::int64_t> filter = e.dims(weights), ones{1, 1};
  if (image.type().type != element_type::f32 || weights.type().type != element_type::f32 ||
      e.anchor_result().type().type != element_type::f32 || filter.size() != 4 || filter[0] != window ||
      filter[1] != window || op.groups != 1 || op.strides != ones || op.dilations != ones ||
      !e.only_parameters(weights))
    return false;
  const extents n(e);
  const std::int64_t lanes = register_lanes(e, element_type::f32);
  return n.channels % lanes == 0 && n.features % lanes == 0 && std::min(n.channels, n.features) >= fewest_channels;
}

}  // namespace

dim winograd_sizes(const kernel_emitter& e) {
  if (!has_winograd(e)) return 0;
  const extents n(e);
  // Patches that extend over the end of an image save less. Large weights must be used several times.
  const dim direct = window * window * n.batches * n.height * n.width,
            few = std::min(fewest_uses, patches_at_once(e, n));
  const dim saves = 1 - dim::min(1, dim::max(0, 4 * factors * n.patches - 3 * direct));
  return saves * (dim::min(n.patches, few) / few);
}

bool suits_winograd(const kernel_emitter& e) { return winograd_sizes(e) == 1; }

void emit_winograd(kernel_emitter& e, const dim& used) { winograd_emitter(e).emit(used); }

}  // namespace kiln::cpu
