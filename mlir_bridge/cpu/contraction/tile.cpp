#include "mlir_bridge/cpu/contraction/tile.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>

namespace kiln::cpu {

element_type accumulation_type(element_type type) {
  if (type == element_type::f64) return element_type::f64;
  if (is_float(type)) return element_type::f32;
  return storage_bits(type) >= 64 ? element_type::i64 : element_type::i32;
}

Value widen(code_builder& code, Value v, element_type from, element_type to) {
  mlir::Type target = code.type(to, code_builder::lanes_of(v));
  if (v.getType() == target) return v;
  if (is_float(to)) return code.make<mlir::arith::ExtFOp>(target, v);
  if (is_signed_integer(from)) return code.make<mlir::arith::ExtSIOp>(target, v);
  return code.make<mlir::arith::ExtUIOp>(target, v);
}

values zero_tile(code_builder& code, const tile_shape& tile, element_type accumulation) {
  return values(static_cast<std::size_t>(tile.rows * tile.vectors),
                code.number(code.type(accumulation, tile.lanes), 0));
}

namespace {

// Does not set the inbounds flag: if a tile extends over the border of an image, the address of its first row is
// outside the tensor.
Value element_address(code_builder& code, Value pointer, mlir::LLVM::GEPArg offset, element_type type) {
  return code.make<mlir::LLVM::GEPOp>(pointer.getType(), code.storage_type(type), pointer,
                                      llvm::ArrayRef<mlir::LLVM::GEPArg>{offset});
}

Value element_address(code_builder& code, Value pointer, std::int64_t offset, element_type type) {
  if (offset == 0) return pointer;
  const bool fits = std::abs(offset) < (std::int64_t{1} << 30);
  return element_address(
      code, pointer,
      fits ? mlir::LLVM::GEPArg(static_cast<std::int32_t>(offset)) : mlir::LLVM::GEPArg(code.constant(offset)), type);
}

Value multiply_add(code_builder& code, Value a, Value b, Value sum) {
  if (mlir::isa<mlir::FloatType>(code_builder::scalar_of(sum))) return code.fma(a, b, sum);
  return code.add(code.mul(a, b), sum);
}

// Disables LLVM's unrolling. LLVM would unroll short loops completely, which takes much compile time and gains nothing.
void forbid_unrolling(mlir::scf::ForOp loop) {
  mlir::MLIRContext* context = loop.getContext();
  auto yes = mlir::BoolAttr::get(context, true);
  auto unroll =
      mlir::LLVM::LoopUnrollAttr::get(context, /*disable=*/yes, /*count=*/{}, /*runtimeDisable=*/{}, /*full=*/{},
                                      /*followupUnrolled=*/{}, /*followupRemainder=*/{}, /*followupAll=*/{});
  loop->setAttr("llvm.loop_annotation",
                mlir::LLVM::LoopAnnotationAttr::get(
                    context, /*disableNonforced=*/{}, /*vectorize=*/{}, /*interleave=*/{}, unroll, /*unrollAndJam=*/{},
                    /*licm=*/{}, /*distribute=*/{}, /*pipeline=*/{}, /*peeled=*/{}, /*unswitch=*/{},
                    /*mustProgress=*/{}, /*isVectorized=*/{}, /*startLoc=*/{}, /*endLoc=*/{}, /*parallelAccesses=*/{}));
}

// Returns the scalar of the left factor for a row at the current step, widened and in every lane.
using row_scalar = std::function<Value(std::int64_t row)>;

// Loads the scalar of each row at `left_at` from memory.
row_scalar scalars_in_memory(code_builder& code, const tile_shape& tile, const factor& left, Value left_at,
                             const std::optional<lane_products>& by_lane, element_type accumulation) {
  return [=, &code, &left](std::int64_t row) {
    const Value at = element_address(code, left_at, row * left.row_stride, left.type);
    const Value scalar = by_lane ? load_lanes(code, at, left.type)
                                 : widen(code, code.load(at, code.constant(0), left.type, 1), left.type, accumulation);
    return code.splat(scalar, tile.lanes);
  };
}

// Loads the next left.steps_of_load steps of each row in `rows` at `left_at`. Element r of the result belongs to row r.
values load_steps(code_builder& code, row_range rows, const factor& left, Value left_at,
                  const std::optional<lane_products>& by_lane, element_type accumulation) {
  values loaded(static_cast<std::size_t>(rows.last));
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    const Value at = element_address(code, left_at, r * left.row_stride, left.type);
    Value& steps = loaded[static_cast<std::size_t>(r)];
    if (by_lane) steps = load_lanes(code, at, left.type, left.steps_of_load);
    else steps = widen(code, code.load(at, code.constant(0), left.type, left.steps_of_load), left.type, accumulation);
  }
  return loaded;
}

// Takes the scalar of each row at step `step` from what load_steps() returned.
row_scalar scalars_in_lanes(code_builder& code, const tile_shape& tile, const values& loaded, std::int64_t step) {
  return [&code, &tile, &loaded, step](std::int64_t row) {
    const Value steps = loaded[static_cast<std::size_t>(row)];
    const llvm::SmallVector<std::int64_t> lanes(static_cast<std::size_t>(tile.lanes), step);
    Value scalars = code.make<mlir::vector::ShuffleOp>(steps, steps, lanes);
    return tile.lanes == 1 ? Value(code.make<mlir::vector::ExtractOp>(scalars, 0)) : scalars;
  };
}

// The same as one_step() for factors whose neighbours share lanes.
values one_lane_step(code_builder& code, const tile_shape& tile, row_range rows, const row_scalar& scalar,
                     const factor& right, Value right_at, values sums) {
  const lane_products& products = *right.by_lane;
  std::vector<lane_factor> columns;
  for (std::int64_t v = 0; v < tile.vectors; ++v)
    columns.push_back(
        split_lanes(code, products, code.load(right_at, code.constant(v * tile.lanes), right.type, tile.lanes), false));
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    const lane_factor row = split_lanes(code, products, scalar(r), true);
    for (std::int64_t v = 0; v < tile.vectors; ++v) {
      Value& sum = sums[static_cast<std::size_t>(r * tile.vectors + v)];
      sum = add_lane_products(code, products, row, columns[static_cast<std::size_t>(v)], sum);
    }
  }
  return sums;
}

// Emits one step of a tile: multiplies the vectors of the right factor at `right_at` by the scalars of the rows.
values one_step(code_builder& code, const tile_shape& tile, row_range rows, const row_scalar& scalar,
                const factor& right, Value right_at, element_type accumulation, values sums) {
  values columns;
  if (right.prefetch_steps) {
    const std::int64_t line = 64 * 8 / storage_bits(right.type);
    for (std::int64_t column = 0; column < tile.columns(); column += line)
      code.prefetch(right_at, code.constant(right.prefetch_steps * right.step_stride + column), right.type, 1);
  }
  if (right.by_lane) return one_lane_step(code, tile, rows, scalar, right, right_at, std::move(sums));
  for (std::int64_t v = 0; v < tile.vectors; ++v)
    columns.push_back(widen(code, code.load(right_at, code.constant(v * tile.lanes), right.type, tile.lanes),
                            right.type, accumulation));
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    const Value row = scalar(r);
    for (std::int64_t v = 0; v < tile.vectors; ++v) {
      Value& sum = sums[static_cast<std::size_t>(r * tile.vectors + v)];
      sum = multiply_add(code, row, columns[static_cast<std::size_t>(v)], sum);
    }
  }
  return sums;
}

}  // namespace

values accumulate(code_builder& code, const tile_shape& tile, row_range rows, const factor& left, Value left_offset,
                  const factor& right, Value right_offset, std::int64_t steps, std::int64_t unroll,
                  element_type accumulation, values sums, const upcoming& next) {
  if (steps <= 0 || rows.first >= rows.last) return sums;
  const Value left_base = element_address(code, left.pointer, left_offset, left.type);
  const Value right_base = element_address(code, right.pointer, right_offset, right.type);
  auto several_steps = [&](Value k, std::int64_t count, values sums) {
    Value left_at = element_address(code, left_base, code.mul(k, left.step_stride), left.type);
    Value right_at = element_address(code, right_base, code.mul(k, right.step_stride), right.type);
    Value next_at = next.pointer ? element_address(code, next.pointer,
                                                   code.add(next.offset, code.mul(k, next.step_stride)), next.type)
                                 : Value();
    const std::int64_t line = 64 * 8 / storage_bits(next.type);
    std::int64_t fetched = -1;  // line of the latest prefetch
    values loaded;
    for (std::int64_t i = 0; i < count; ++i) {
      if (next.pointer && i * next.step_stride / line > fetched) {
        fetched = i * next.step_stride / line;
        code.prefetch(next_at, code.constant(i * next.step_stride), next.type, 2);
      }
      const std::int64_t group = left.steps_of_load, first = i / group * group;
      const bool by_load = group > 1 && first + group <= count;
      const Value at = element_address(code, left_at, i * left.step_stride, left.type);
      if (by_load && i == first) loaded = load_steps(code, rows, left, at, right.by_lane, accumulation);
      const row_scalar scalar = by_load ? scalars_in_lanes(code, tile, loaded, i - first)
                                        : scalars_in_memory(code, tile, left, at, right.by_lane, accumulation);
      sums =
          one_step(code, tile, rows, scalar, right, element_address(code, right_at, i * right.step_stride, right.type),
                   accumulation, std::move(sums));
    }
    return sums;
  };
  unroll = std::clamp<std::int64_t>(unroll * left.steps_of_load, 1, steps);
  const std::int64_t even = steps / unroll * unroll;
  // The loop carries only the sums of rows in the range.
  const auto from = static_cast<std::ptrdiff_t>(rows.first * tile.vectors),
             to = static_cast<std::ptrdiff_t>(rows.last * tile.vectors);
  values carried(sums.begin() + from, sums.begin() + to);
  carried = code.loop(0, even, unroll, carried, [&](Value k, std::span<const Value> current) {
    values all = sums;
    std::copy(current.begin(), current.end(), all.begin() + from);
    all = several_steps(k, unroll, std::move(all));
    return values(all.begin() + from, all.begin() + to);
  });
  if (auto loop = carried[0].getDefiningOp<mlir::scf::ForOp>()) forbid_unrolling(loop);
  std::copy(carried.begin(), carried.end(), sums.begin() + from);
  if (even < steps) sums = several_steps(code.constant(even), steps - even, std::move(sums));
  return sums;
}

values accumulate(code_builder& code, const tile_shape& tile, const factor& left, Value left_offset,
                  const factor& right, Value right_offset, Value steps, element_type accumulation, values sums) {
  const Value left_base = element_address(code, left.pointer, left_offset, left.type);
  const Value right_base = element_address(code, right.pointer, right_offset, right.type);
  sums = code.loop(code.constant(0), steps, 1, std::move(sums), [&](Value k, std::span<const Value> current) {
    Value left_at = element_address(code, left_base, code.mul(k, left.step_stride), left.type);
    Value right_at = element_address(code, right_base, code.mul(k, right.step_stride), right.type);
    return one_step(code, tile, {0, tile.rows},
                    scalars_in_memory(code, tile, left, left_at, right.by_lane, accumulation), right, right_at,
                    accumulation, values(current.begin(), current.end()));
  });
  if (auto loop = sums[0].getDefiningOp<mlir::scf::ForOp>()) forbid_unrolling(loop);
  return sums;
}

}  // namespace kiln::cpu
