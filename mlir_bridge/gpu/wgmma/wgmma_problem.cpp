#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"

#include <algorithm>
#include <numeric>

#include "ir/ops/contraction.hpp"
#include "ir/ops/elementwise.hpp"
#include "mlir_bridge/codegen/open_origin.hpp"
#include "mlir_bridge/gpu/contraction/packing.hpp"
#include "mlir_bridge/gpu/split_f32.hpp"

namespace kiln::gpu {

namespace {

// Alignment of strides in bytes.
constexpr std::int64_t map_alignment = 16;
// Bytes of one swizzled row.
constexpr std::int64_t box_row_bytes = 128;

std::int64_t bytes_of(element_type type) { return storage_bits(type) / 8; }

bool copies(const wgmma_operand& o) {
  const std::int64_t size = bytes_of(o.memory.type);
  return o.pitch * size % map_alignment == 0 && o.batch_pitch * size % map_alignment == 0;
}

// Returns true for f16 times f16, bf16 times bf16, f32 times f32, floats of 8 bits of one type, and 8-bit integers of
// any signedness.
bool multiplies(element_type a, element_type b) {
  auto small = [](element_type t) { return t == element_type::i8 || t == element_type::u8; };
  return (a == b && (a == element_type::f16 || a == element_type::bf16 || a == element_type::f32 || is_float8(a))) ||
         (small(a) && small(b));
}

// Whether v is rounded to 16 bits inside the kernel, as in models that compute in f16 or bf16.
bool becomes_short(value v) {
  return std::ranges::any_of(v.producer->users(), [](const instruction* user) {
    const operation& op = user->op();
    const auto& results = user->outputs();
    if (results.size() != 1 || !(op.is<convert>() || op.is<elementwise>())) return false;
    return results[0].type == element_type::f16 || results[0].type == element_type::bf16 ||
           becomes_short(value{const_cast<instruction*>(user), 0});
  });
}

// The matrix unit keeps about 13 bits of sums of 8-bit floats: enough for results of 16 bits. Others have f16 factors.
bool suits_float8(const kernel_emitter& e, const buffer& factor) {
  return !is_float8(factor.type) || becomes_short(e.anchor_result());
}

bool is_short_float(element_type type) { return type == element_type::f16 || type == element_type::bf16; }

// Emits a stage that copies 8-bit elements to [rows, k] with k innermost and rows padded to whole 16 bytes.
wgmma_operand transposed_copy(kernel_emitter& e, const wgmma_operand& from, std::int64_t batch) {
  wgmma_operand to = from;
  const std::int64_t elements = map_alignment / bytes_of(from.memory.type), matrices = from.batch_pitch ? batch : 1;
  to.k_inner = true;
  to.rearrange = false;
  to.pitch = (from.k + elements - 1) / elements * elements;
  to.batch_pitch = from.batch_pitch ? from.rows * to.pitch : 0;
  to.memory = e.add_scratch(from.memory.type, {matrices, from.rows, to.pitch}, true);
  code_builder& code = e.code;
  e.parallel(
      "pack", {matrices, from.rows, to.pitch}, 1,
      [&](std::span<const Value> at) {
        Value k = code.min(at[2], from.k - 1);
        Value offset =
            code.add(code.mul(at[0], from.batch_pitch), from.k_inner ? code.add(code.mul(at[1], from.pitch), k)
                                                                     : code.add(code.mul(k, from.pitch), at[1]));
        Value element = code.load(e.pointer(from.memory), offset, from.memory.type, 1);
        element = code.select(code.less(at[2], code.constant(from.k)), element, code.number(element.getType(), 0));
        code.store(e.pointer(to.memory), code.linearize(at, to.memory.dims()), to.memory.type, element);
      },
      true);
  return to;
}

// Emits a stage that computes an f32 operand and splits it into parts, with rows padded to whole 16 bytes. `count`: the
// number of its matrices, which may be open. `rows`: the number of rows, if it is open.
wgmma_operand split_copy(kernel_emitter& e, const wgmma_operand& from, const dim& count, const std::optional<dim>& rows,
                         const dim& used) {
  wgmma_operand to = from;
  const std::int64_t inner = from.k_inner ? from.k : from.rows, outer = from.k_inner ? from.rows : from.k,
                     piece = map_alignment / bytes_of(element_type::bf16),
                     padding = rows ? box_row_bytes / bytes_of(element_type::bf16) : piece,
                     pitch = (inner + padding - 1) / padding * padding;
  const dim matrices = from.batch_pitch ? count : 1, lines = rows ? *rows : matrices * outer;
  const bool prepare = from.source.type().is_static() && e.only_parameters(from.source);
  to.parts_in_rows = rows.has_value();
  to.pitch = rows ? from.parts * pitch : pitch;
  to.batch_pitch = from.parts * outer * pitch;
  if (rows) to.k = to.pitch;
  to.memory = rows ? e.add_open_scratch(element_type::bf16, {*rows, from.parts, pitch})
                   : e.add_open_scratch(element_type::bf16, {matrices, from.parts, outer, pitch}, prepare);
  const std::int64_t lanes = inner % piece ? 1 : piece, filled = rows ? pitch : inner;
  std::vector<dim> leading = kernel_emitter::sizes(from.source);
  leading.pop_back();
  code_builder& code = e.code;
  e.parallel_open(
      "split", {prepare ? lines : lines * used, filled / lanes}, 8 * lanes,
      [&](std::span<const Value> at) {
        Value column = code.mul(at[1], lanes), own = filled == inner ? column : code.min(column, inner - lanes);
        position where;
        for (Value index : e.delinearize(at[0], leading)) where.push_back({index, 0, {}});
        where.push_back({own, lanes > 1 ? 1 : 0, {}, 0, inner, lanes});
        evaluator ev(e);
        Value numbers = ev.at(from.source, where, lanes);
        if (filled != inner)
          numbers = code.select(code.less(column, code.constant(inner)), numbers, code.number(numbers.getType(), 0));
        const auto parts = split_f32(code, numbers);
        Value first;
        if (rows) {
          first = code.add(code.mul(at[0], to.pitch), column);
        } else {
          Value matrix = code.div(at[0], outer), row = code.rem(at[0], outer);
          first = code.add(code.add(code.mul(matrix, to.batch_pitch), code.mul(row, pitch)), column);
        }
        const std::int64_t next = rows ? pitch : outer * pitch;
        for (std::int64_t part = 0; part < from.parts; ++part)
          code.make<mlir::LLVM::StoreOp>(
              parts[static_cast<std::size_t>(part)],
              code.address(e.pointer(to.memory), code.add(first, part * next), element_type::bf16),
              static_cast<unsigned>(2 * lanes));
      },
      prepare);
  return to;
}

// Returns the buffer that holds v. f32 need not be in memory, because it is split first.
std::optional<buffer> readable(const kernel_emitter& e, value v) {
  if (v.type().type == element_type::f32 && e.anchor_result().type().type == element_type::f32) return buffer{};
  return e.in_memory(v);
}

// Reads B as it is in memory, if it is f32, so that its parts need no memory. Constant weights whose rows are not
// aligned are first copied to whole rows with k innermost, as kernels of few rows do.
void divide_in_kernel(const kernel_emitter& e, wgmma_operand& b, value v) {
  const auto memory = b.memory.type == element_type::f32 ? e.in_memory(v) : std::nullopt;
  if (!memory || memory->type != element_type::f32) return;
  b.rearrange = !copies(b);
  if (b.rearrange && (b.k_inner || v.type().rank() != 2 || !v.type().is_static() || !e.only_parameters(v))) {
    b.rearrange = false;
    return;
  }
  b.memory = *memory, b.divided = true;
}

// Returns true if the copy engine can read the operand, possibly after it is rearranged or split.
bool make_copyable(const kernel_emitter& e, wgmma_operand& o, value v) {
  o.source = v;
  if (o.divided) return true;
  if (o.memory.type == element_type::f32) return o.parts = f32_parts, true;
  // The matrix unit reads elements of 8 bits with k innermost only.
  const bool bytes = storage_bits(o.memory.type) == 8;
  if (copies(o) && (o.k_inner || !bytes)) return true;
  o.rearrange = bytes && e.only_parameters(v);
  return o.rearrange;
}

bool outputs_like_anchor(const kernel_emitter& e) {
  const std::vector<dim>& sizes = kernel_emitter::sizes(e.anchor_result());
  return std::ranges::all_of(e.outputs(), [&](value v) { return kernel_emitter::sizes(v) == sizes; });
}

std::vector<std::int64_t> dims_at(value v, const dim_bindings& sample) {
  std::vector<std::int64_t> result;
  for (const dim& d : kernel_emitter::sizes(v)) result.push_back(d.substitute(sample).value());
  return result;
}

bool is_static(std::span<const dim> sizes) {
  return std::ranges::all_of(sizes, [](const dim& d) { return d.is_static(); });
}

dim product(std::span<const dim> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), dim(1), std::multiplies<>());
}

// Rows whose parts are padded to whole boxes take at most this share of additional memory: offsets into an open tensor
// of less than 2^31 bytes fit 32 bits, and so must those into its parts, which are 1.5 times as large.
bool pads_little(std::int64_t k) {
  constexpr std::int64_t elements = box_row_bytes / 2;
  return (k + elements - 1) / elements * elements * 4 <= k * 5;
}

// Sets the number of rows of the problem if it is open. Returns false if anything else is, or if the rows would have to
// be rearranged first.
bool open_rows(wgmma_problem& p, const dim& rows, bool rest_is_static) {
  if (rows.is_static() && rest_is_static) return true;
  if (!rest_is_static || p.batch != 1 || !p.a.k_inner || p.a.rearrange) return false;
  if (p.a.parts > 1 && !p.image && !pads_little(p.a.k)) return false;
  p.open_m = rows;
  return true;
}

axis_index at(Value base) { return {base, 0, {}}; }

// Returns true if kernels for other numbers of rows read a copy of the weights [k, n] with k innermost
// (contraction/packing.hpp), because they have too few rows for wgmma. This kernel then reads the copy, too: both
// layouts would take twice the memory.
bool reads_shared_copy(const kernel_emitter& e, const wgmma_problem& p) {
  const auto origin = find_origin(e.configuration);
  const auto has_copy = [&](const wgmma_operand& weights) {
    const buffer& memory = weights.memory;
    return (is_short_float(memory.type) || weights.divided) && !weights.k_inner && weights.source.type().rank() == 2 &&
           memory.kind == buffer_kind::input && origin->is_static(memory.index);
  };
  if (!origin || p.batch != 1 || p.open_m || !has_copy(p.b) || (p.second_b && !has_copy(*p.second_b))) return false;
  wgmma_size fewest = size_of(e, p);
  fewest.m = origin->fewest_rows, fewest.n = p.n, fewest.products = 1, fewest.scaled = false;
  return !choose_wgmma_tile(fewest, e.target, {});
}

}  // namespace

bool is_float8(element_type type) { return type == element_type::f8e4m3 || type == element_type::f8e5m2; }

tensor_map make_tensor_map(const wgmma_operand& from, std::int64_t batch, std::int64_t box_rows) {
  const std::int64_t size = bytes_of(from.memory.type);
  tensor_map map;
  map.type = from.memory.type;
  map.dims = {from.k_inner ? from.k : from.rows, from.k_inner ? from.rows : from.k};
  map.strides = {from.pitch * size};
  map.box = {box_row_bytes / size, box_rows};
  if (from.parts > 1 && !from.parts_in_rows) {
    // The parts of a matrix, and those of the next one.
    const std::int64_t outer = from.k_inner ? from.rows : from.k;
    map.dims.push_back(from.memory.dims()[0] * from.parts);
    map.strides.push_back(outer * from.pitch * size);
    map.box.push_back(1);
  } else if (from.batch_pitch && batch > 1) {
    map.dims.push_back(batch);
    map.strides.push_back(from.batch_pitch * size);
    map.box.push_back(1);
  }
  map.swizzle_bytes = 128;
  map.l2_promotion_bytes = 256;
  return map;
}

std::optional<wgmma_problem> find_dot_problem(kernel_emitter& e, const joined_product* joined,
                                              const dim_bindings& sample) {
  const dot& op = *e.anchor()->op().get_if<dot>();
  const value a = joined ? joined->rows : e.anchor()->inputs()[0], b = e.anchor()->inputs()[1];
  auto a_memory = readable(e, a), b_memory = readable(e, b);
  if (!a_memory || !b_memory || !multiplies(a_memory->type, b_memory->type) || !outputs_like_anchor(e) ||
      !suits_float8(e, *a_memory))
    return std::nullopt;
  auto result = dims_at(e.anchor_result(), sample);
  const std::size_t rank = result.size();
  std::vector<std::int64_t> batch_dims(result.begin(), result.end() - 2);
  wgmma_problem p;
  p.batch = std::accumulate(batch_dims.begin(), batch_dims.end(), std::int64_t{1}, std::multiplies<>());
  p.m = result[rank - 2], p.n = result[rank - 1], p.k = dims_at(a, sample)[op.transpose_a ? rank - 2 : rank - 1];
  if (p.batch < 1 || p.m < 1 || p.n < 1 || p.k < 1) return std::nullopt;
  p.a = {*a_memory, p.m, p.k, !op.transpose_a, op.transpose_a ? p.m : p.k, p.batch > 1 ? p.m * p.k : 0};
  p.b = {*b_memory, p.n, p.k, op.transpose_b, op.transpose_b ? p.k : p.n, p.batch > 1 ? p.n * p.k : 0};
  divide_in_kernel(e, p.b, b);
  if (!make_copyable(e, p.a, a) || !make_copyable(e, p.b, b)) return std::nullopt;
  if (joined) {
    p.epsilon = joined->epsilon;
    if (joined->second) {
      const value other = joined->second->inputs()[1];
      const auto memory = e.in_memory(other);
      if (!memory) return std::nullopt;
      p.second_b = p.b;
      p.second_b->memory = *memory, p.second_b->source = other;
      p.second = {const_cast<instruction*>(joined->second), 0};
    }
  }
  const std::vector<dim>& sizes = kernel_emitter::sizes(e.anchor_result());
  const bool rest_is_static = is_static(std::span(sizes).first(rank - 2)) && sizes[rank - 1].is_static() &&
                              kernel_emitter::sizes(a).back().is_static() && b.type().is_static();
  if (!open_rows(p, sizes[rank - 2], rest_is_static || is_static(sizes))) return std::nullopt;
  p.locate = [&e, batch_dims](Value batch, Value row) {
    position where;
    for (Value index : e.code.delinearize(batch, batch_dims)) where.push_back(at(index));
    where.push_back(at(row));
    return where;
  };
  if (reads_shared_copy(e, p)) {
    p.b.rearrange = true;
    if (p.second_b) p.second_b->rearrange = true;
  }
  return p;
}

tensor_map make_image_map(const wgmma_problem& problem) {
  const wgmma_image& i = *problem.image;
  const std::int64_t size = bytes_of(problem.a.memory.type), matrices = i.images * problem.a.parts;
  tensor_map map;
  map.type = problem.a.memory.type;
  map.dims = {i.channels, i.width, i.height, matrices};
  map.strides = {problem.a.pitch * size, i.width * problem.a.pitch * size, i.height * i.width * problem.a.pitch * size};
  map.box = {box_row_bytes / size, i.box_width, i.box_height, 1};
  if (i.open_images) map.dims.back() = 0, map.open_outer = *i.open_images * problem.a.parts;
  map.swizzle_bytes = 128;
  map.l2_promotion_bytes = 256;
  return map;
}

wgmma_image with_box(const wgmma_image& image, std::int64_t rows) {
  wgmma_image best = image;
  for (std::int64_t width = std::min(rows, image.out_width); width > 0; --width) {
    wgmma_image next = image;
    next.box_width = width, next.box_height = std::min(rows / width, image.out_height);
    if (best.box_width == 0 || next.tiles() < best.tiles()) best = next;
  }
  return best;
}

void divide_image(kernel_emitter& e, wgmma_problem& problem, std::int64_t rows) {
  if (!problem.image) return;
  const wgmma_image image = with_box(*problem.image, rows);
  problem.image = image;
  problem.m = image.tiles() * rows;
  const dim images = image.open_images.value_or(image.images);
  if (image.open_images) problem.open_m = images * image.tiles_y() * image.tiles_x() * rows;
  problem.result_row = [&e, image, images, rows](Value row) {
    code_builder& code = e.code;
    const std::vector<std::int64_t> tiles{image.images, image.tiles_y(), image.tiles_x()};
    Value inside = code.rem(row, rows), tile = code.div(row, rows);
    Value tile_x = code.rem(tile, tiles[2]), above = code.div(tile, tiles[2]), tile_y = code.rem(above, tiles[1]),
          number = code.div(above, tiles[1]);
    Value y = code.add(code.mul(tile_y, image.box_height), code.div(inside, image.box_width)),
          x = code.add(code.mul(tile_x, image.box_width), code.rem(inside, image.box_width));
    const auto limit = [&](std::int64_t n) { return code.integer(row.getType(), n); };
    Value exists = code.less(inside, limit(image.box_height * image.box_width));
    if (image.out_height % image.box_height)
      exists = code.make<mlir::arith::AndIOp>(exists, code.less(y, limit(image.out_height)));
    if (image.out_width % image.box_width)
      exists = code.make<mlir::arith::AndIOp>(exists, code.less(x, limit(image.out_width)));
    y = code.min(y, image.out_height - 1), x = code.min(x, image.out_width - 1);
    Value result = code.add(code.mul(code.add(code.mul(number, image.out_height), y), image.out_width), x);
    return std::pair{e.min(result, images * image.out_height * image.out_width - 1), exists};
  };
}

namespace {

std::optional<wgmma_image> find_image(const convolution& op, const std::vector<std::int64_t>& image,
                                      const std::vector<std::int64_t>& window, const std::vector<std::int64_t>& out) {
  // At most a quarter of the products may be with the zeros that fill blocks of channels.
  constexpr std::int64_t block = 64;
  const std::int64_t channels = image.back(), blocks = (channels + block - 1) / block;
  if (image.size() != 4 || channels * 4 < blocks * block * 3) return std::nullopt;
  return wgmma_image{image[0],
                     image[1],
                     image[2],
                     channels,
                     out[1],
                     out[2],
                     window[0],
                     window[1],
                     op.dilations.at(0),
                     op.dilations.at(1),
                     op.pads_begin.at(0),
                     op.pads_begin.at(1)};
}

}  // namespace

std::optional<wgmma_problem> find_convolution_problem(kernel_emitter& e, const dim_bindings& sample) {
  const convolution& op = *e.anchor()->op().get_if<convolution>();
  const value image = e.anchor()->inputs()[0], weights = e.anchor()->inputs()[1];
  auto ones = [](const std::vector<std::int64_t>& list, std::int64_t wanted) {
    return std::ranges::all_of(list, [&](std::int64_t v) { return v == wanted; });
  };
  auto window = kernel_emitter::dims(weights);
  const std::size_t spatial = window.size() - 2;
  const bool one_by_one = std::all_of(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(spatial),
                                      [](std::int64_t v) { return v == 1; });
  if (op.layout != tensor_layout::channels_last || op.groups != 1 || !ones(op.strides, 1)) return std::nullopt;
  const bool plain = one_by_one && ones(op.pads_begin, 0) && ones(op.pads_end, 0);
  auto a_memory = readable(e, image), b_memory = readable(e, weights);
  if (!a_memory || !b_memory || !multiplies(a_memory->type, b_memory->type) || !outputs_like_anchor(e))
    return std::nullopt;
  auto result = dims_at(e.anchor_result(), sample);
  const std::vector<dim> row_sizes(kernel_emitter::sizes(e.anchor_result()).begin(),
                                   kernel_emitter::sizes(e.anchor_result()).end() - 1);
  std::vector<std::int64_t> row_dims(result.begin(), result.end() - 1);
  const auto locate = [&e, row_sizes](Value, Value row) {
    position where;
    for (Value index : e.delinearize(row, row_sizes)) where.push_back(at(index));
    return where;
  };
  wgmma_problem p;
  if (!plain) {
    const std::vector<std::int64_t> image_dims = dims_at(image, sample);
    if (storage_bits(a_memory->type) == 8 || !(p.image = find_image(op, image_dims, window, result)))
      return std::nullopt;
    if (result.back() < 1 || p.image->images * p.image->out_height * p.image->out_width < 1) return std::nullopt;
    p.n = result.back(), p.k = p.image->taps() * ((p.image->channels + 63) / 64 * 64);
    const std::int64_t pixels = p.image->height * p.image->width, channels = p.image->channels;
    p.a = {*a_memory, pixels, channels, true, channels, pixels * channels};
    p.b = {*b_memory, p.n, p.image->taps() * channels, false, p.n, 0};
    divide_in_kernel(e, p.b, weights);
    if (!make_copyable(e, p.a, image) || !make_copyable(e, p.b, weights)) return std::nullopt;
    p.batch = 1;
    const bool rest_is_static =
        is_static(std::span(row_sizes).subspan(1)) && is_static(std::span(kernel_emitter::sizes(image)).subspan(1));
    if (!open_rows(p, row_sizes[0], rest_is_static)) return std::nullopt;
    if (p.open_m) p.image->open_images = p.open_m;
    p.locate = locate;
    return p;
  }
  p.m = std::accumulate(row_dims.begin(), row_dims.end(), std::int64_t{1}, std::multiplies<>());
  p.n = result.back(), p.k = window[spatial];
  if (p.m < 1 || p.n < 1 || p.k < 1) return std::nullopt;
  p.a = {*a_memory, p.m, p.k, true, p.k, 0};
  p.b = {*b_memory, p.n, p.k, false, p.n, 0};
  divide_in_kernel(e, p.b, weights);
  if (!make_copyable(e, p.a, image) || !make_copyable(e, p.b, weights)) return std::nullopt;
  if (!open_rows(p, product(row_sizes), true)) return std::nullopt;
  p.locate = locate;
  return p;
}

wgmma_operand in_rows(const wgmma_operand& of, const buffer& copy) {
  wgmma_operand result = of;
  result.memory = copy;
  result.k_inner = true;
  result.rearrange = false;
  result.pitch = copy.dims().back();
  return result;
}

void rearrange_operands(kernel_emitter& e, wgmma_problem& problem) {
  if (problem.second_b && problem.second_b->rearrange)
    *problem.second_b = in_rows(*problem.second_b, pack_weights(e, problem.second_b->source));
  for (wgmma_operand* o : {&problem.a, &problem.b}) {
    if (o->rearrange)
      *o = storage_bits(o->memory.type) == 8 ? transposed_copy(e, *o, problem.batch)
                                             : in_rows(*o, pack_weights(e, o->source));
    if (o->parts == 1) continue;
    const bool rows_are_open = o == &problem.a && problem.open_m && !problem.image;
    dim matrices = problem.batch;
    if (problem.image) matrices = problem.image->open_images.value_or(problem.image->images);
    *o = split_copy(e, *o, matrices, rows_are_open ? problem.open_m : std::nullopt, problem.used);
  }
}

}  // namespace kiln::gpu
