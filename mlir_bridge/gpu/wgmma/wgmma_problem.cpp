#include "mlir_bridge/gpu/wgmma/wgmma_problem.hpp"

#include <algorithm>
#include <numeric>

#include "ir/ops/contraction.hpp"

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

// Returns true for f16 times f16, bf16 times bf16, and 8-bit integers of any signedness.
bool multiplies(element_type a, element_type b) {
  auto small = [](element_type t) { return t == element_type::i8 || t == element_type::u8; };
  return (a == b && (a == element_type::f16 || a == element_type::bf16)) || (small(a) && small(b));
}

// Emits a stage that copies the operand to [rows, k] with k innermost and rows padded to whole 16 bytes.
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

// Returns true if the copy engine can read the operand, possibly after it is rearranged.
bool make_copyable(const kernel_emitter& e, wgmma_operand& o, value v) {
  if (copies(o) && (o.k_inner || !is_integer(o.memory.type))) return true;
  o.rearrange = is_integer(o.memory.type) && e.only_parameters(v);
  return o.rearrange;
}

bool outputs_like_anchor(const kernel_emitter& e) {
  auto dims = kernel_emitter::dims(e.anchor_result());
  return std::ranges::all_of(e.fusion.outputs(), [&](value v) { return kernel_emitter::dims(v) == dims; });
}

axis_index at(Value base) { return {base, 0, {}}; }

}  // namespace

tensor_map make_tensor_map(const wgmma_operand& from, std::int64_t batch, std::int64_t box_rows) {
  const std::int64_t size = bytes_of(from.memory.type);
  tensor_map map;
  map.type = from.memory.type;
  map.dims = {from.k_inner ? from.k : from.rows, from.k_inner ? from.rows : from.k};
  map.strides = {from.pitch * size};
  map.box = {box_row_bytes / size, box_rows};
  if (from.batch_pitch && batch > 1) {
    map.dims.push_back(batch);
    map.strides.push_back(from.batch_pitch * size);
    map.box.push_back(1);
  }
  map.swizzle_bytes = 128;
  map.l2_promotion_bytes = 256;
  return map;
}

std::optional<wgmma_problem> find_dot_problem(kernel_emitter& e) {
  const dot& op = *e.anchor()->op().get_if<dot>();
  const value a = e.anchor()->inputs()[0], b = e.anchor()->inputs()[1];
  auto a_memory = e.in_memory(a), b_memory = e.in_memory(b);
  if (!a_memory || !b_memory || !multiplies(a_memory->type, b_memory->type) || !outputs_like_anchor(e))
    return std::nullopt;
  auto result = kernel_emitter::dims(e.anchor_result());
  const std::size_t rank = result.size();
  std::vector<std::int64_t> batch_dims(result.begin(), result.end() - 2);
  wgmma_problem p;
  p.batch = std::accumulate(batch_dims.begin(), batch_dims.end(), std::int64_t{1}, std::multiplies<>());
  p.m = result[rank - 2], p.n = result[rank - 1], p.k = kernel_emitter::dims(a)[op.transpose_a ? rank - 2 : rank - 1];
  if (p.batch < 1 || p.m < 1 || p.n < 1 || p.k < 1) return std::nullopt;
  p.a = {*a_memory, p.m, p.k, !op.transpose_a, op.transpose_a ? p.m : p.k, p.batch > 1 ? p.m * p.k : 0};
  p.b = {*b_memory, p.n, p.k, op.transpose_b, op.transpose_b ? p.k : p.n, p.batch > 1 ? p.n * p.k : 0};
  if (!make_copyable(e, p.a, a) || !make_copyable(e, p.b, b)) return std::nullopt;
  p.locate = [&e, batch_dims](Value batch, Value row) {
    position where;
    for (Value index : e.code.delinearize(batch, batch_dims)) where.push_back(at(index));
    where.push_back(at(row));
    return where;
  };
  return p;
}

std::optional<wgmma_problem> find_convolution_problem(kernel_emitter& e) {
  const convolution& op = *e.anchor()->op().get_if<convolution>();
  const value image = e.anchor()->inputs()[0], weights = e.anchor()->inputs()[1];
  auto ones = [](const std::vector<std::int64_t>& list, std::int64_t wanted) {
    return std::ranges::all_of(list, [&](std::int64_t v) { return v == wanted; });
  };
  auto window = kernel_emitter::dims(weights);
  const std::size_t spatial = window.size() - 2;
  const bool one_by_one = std::all_of(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(spatial),
                                      [](std::int64_t v) { return v == 1; });
  if (op.layout != tensor_layout::channels_last || op.groups != 1 || !one_by_one || !ones(op.strides, 1) ||
      !ones(op.pads_begin, 0) || !ones(op.pads_end, 0))
    return std::nullopt;
  auto a_memory = e.in_memory(image), b_memory = e.in_memory(weights);
  if (!a_memory || !b_memory || !multiplies(a_memory->type, b_memory->type) || !outputs_like_anchor(e))
    return std::nullopt;
  auto result = kernel_emitter::dims(e.anchor_result());
  std::vector<std::int64_t> row_dims(result.begin(), result.end() - 1);
  wgmma_problem p;
  p.m = std::accumulate(row_dims.begin(), row_dims.end(), std::int64_t{1}, std::multiplies<>());
  p.n = result.back(), p.k = window[spatial];
  if (p.m < 1 || p.n < 1 || p.k < 1) return std::nullopt;
  p.a = {*a_memory, p.m, p.k, true, p.k, 0};
  p.b = {*b_memory, p.n, p.k, false, p.n, 0};
  if (!make_copyable(e, p.a, image) || !make_copyable(e, p.b, weights)) return std::nullopt;
  p.locate = [&e, row_dims](Value, Value row) {
    position where;
    for (Value index : e.code.delinearize(row, row_dims)) where.push_back(at(index));
    return where;
  };
  return p;
}

void rearrange_operands(kernel_emitter& e, wgmma_problem& problem) {
  if (problem.a.rearrange) problem.a = transposed_copy(e, problem.a, problem.batch);
  if (problem.b.rearrange) problem.b = transposed_copy(e, problem.b, problem.batch);
}

}  // namespace kiln::gpu
