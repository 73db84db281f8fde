#include "mlir_bridge/cpu/contraction/matrix_tile.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "mlir_bridge/codegen/call_intrinsic.hpp"

namespace kiln::cpu {

namespace {

// Numbers of the registers of the factors; those of the sums are the first four.
constexpr std::int64_t left_registers = 4, right_registers = 6;
constexpr std::int64_t register_bytes = 64;  // of a row
// Bytes of a configuration, and the places of the lengths of rows (16 bits each) and of the numbers of rows.
constexpr std::int64_t configuration_bytes = 64, lengths_at = 16, rows_at = 48, registers = 8;
// Products of fewer rows are limited by memory, and vectors take less code. VNNI multiplies 7 rows of bytes as fast.
constexpr std::int64_t fewest_rows = 5, fewest_rows_beside_vnni = 8;
// Tiles of at least so many rows are worth that all of them are equal.
constexpr std::int64_t equal_rows = 24;

}  // namespace

std::int64_t matrix_steps_of(std::int64_t steps) { return (steps + matrix_steps - 1) / matrix_steps * matrix_steps; }

std::optional<tile_shape> choose_matrix_tile(const kernel_emitter& e, const std::optional<lane_products>& by_lane,
                                             std::int64_t rows, std::int64_t columns, std::int64_t steps) {
  if (!by_lane || by_lane->matrix.empty() || choose(e.configuration, "matrix", 1) == 0) return std::nullopt;
  if (rows < (by_lane->vnni ? fewest_rows_beside_vnni : fewest_rows) || columns < matrix_lanes ||
      4 * steps < 3 * matrix_steps_of(steps))
    return std::nullopt;
  const std::int64_t vectors = (columns + matrix_lanes - 1) / matrix_lanes;
  if (rows <= matrix_rows) return tile_shape{rows, std::min<std::int64_t>(vectors, 4), matrix_lanes};
  constexpr std::int64_t most_rows = 2 * matrix_rows;
  std::int64_t height = std::min(rows, most_rows);
  // Tiles that are all equal need one configuration.
  for (std::int64_t r = height; r >= equal_rows; --r)
    if (rows % r == 0) {
      height = r;
      break;
    }
  return tile_shape{height, std::min<std::int64_t>(vectors, 2), matrix_lanes};
}

std::optional<lane_products> worthwhile(const kernel_emitter& e, const std::optional<lane_products>& by_lane,
                                        std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  if (!by_lane || by_lane->vectors) return by_lane;
  return choose_matrix_tile(e, by_lane, rows, columns, steps_of(by_lane, depth)) ? by_lane : std::nullopt;
}

std::vector<candidate> with_matrix_tile(std::vector<candidate> vectors) {
  // Eight times the products of vectors in a cycle, of which loads and the end of a tile take half.
  constexpr double share = 0.25;
  double least = std::numeric_limits<double>::max();
  for (candidate& c : vectors) {
    c.configuration["matrix"] = 0;
    least = std::min(least, c.cost);
  }
  vectors.push_back({{{"matrix", 1}}, share * least});
  return vectors;
}

matrix_tile::matrix_tile(kernel_emitter& e, const lane_products& products, const tile_shape& shape)
    : code(e.code),
      products_(products),
      shape_(shape),
      configuration_(code.stack(element_type::u8, configuration_bytes)) {
  const auto set = [&](std::int64_t at, std::int64_t byte) {
    code.store(configuration_, code.constant(at), element_type::u8, code.integer(code.builder.getI8Type(), byte));
  };
  // The processor refuses lengths of registers that have no rows.
  const auto is_used = [&](std::int64_t number) {
    if (number >= right_registers) return number - right_registers < shape_.vectors;
    return number < left_registers ? number < blocks() * shape_.vectors : number - left_registers < blocks();
  };
  for (std::int64_t at = 0; at < configuration_bytes; ++at) set(at, at == 0 ? 1 : 0);  // byte 0: the palette's number
  for (std::int64_t number = 0; number < registers; ++number) {
    if (is_used(number)) set(lengths_at + 2 * number, register_bytes);
    if (is_used(number) && number >= right_registers) set(rows_at + number, matrix_steps);
  }
  configure(code.constant(shape_.rows));
}

void matrix_tile::set_rows(std::int64_t block, Value rows) {
  const auto set = [&](std::int64_t number) {
    code.store(configuration_, code.constant(rows_at + number), element_type::u8,
               code.make<mlir::arith::TruncIOp>(code.builder.getI8Type(), rows));
  };
  set(left_registers + block);
  for (std::int64_t v = 0; v < shape_.vectors; ++v) set(block * shape_.vectors + v);
}

void matrix_tile::configure(Value rows) {
  for (std::int64_t block = 0; block < blocks(); ++block)
    set_rows(block, code.max(code.min(code.sub(rows, block * matrix_rows), matrix_rows), 1));
  call_intrinsic(code, "llvm.x86.ldtilecfg", {}, {configuration_});
}

void matrix_tile::use_rows(Value rows) {
  partial_ = code.less(rows, code.constant(shape_.rows));
  if (blocks() == 2) second_exists_ = code.less(code.constant(matrix_rows), rows);
  code.when(partial_, [&] { configure(rows); });
}

void matrix_tile::use_all_rows() {
  code.when(partial_, [&] { configure(code.constant(shape_.rows)); });
  second_exists_ = {};
}

Value matrix_tile::register_of(std::int64_t number) { return code.integer(code.builder.getI8Type(), number); }

void matrix_tile::clear() {
  for (std::int64_t i = 0; i < blocks() * shape_.vectors; ++i)
    call_intrinsic(code, "llvm.x86.tilezero", {}, {register_of(i)});
}

Value matrix_tile::block_at(Value pointer, std::int64_t block, std::int64_t pitch) {
  if (block == 0) return pointer;
  Value offset = code.constant(block * matrix_rows * pitch);
  if (second_exists_) offset = code.select(second_exists_, offset, code.constant(0));
  return code.address(pointer, offset, element_type::u8);
}

void matrix_tile::add(Value left, std::int64_t left_pitch, Value right, std::int64_t right_pitch) {
  const std::string multiply = "llvm.x86." + std::string(products_.matrix);
  for (std::int64_t block = 0; block < blocks(); ++block)
    call_intrinsic(code, "llvm.x86.tileloadd64", {},
                   {register_of(left_registers + block), block_at(left, block, left_pitch), code.constant(left_pitch)});
  for (std::int64_t v = 0; v < shape_.vectors; ++v) {
    const Value columns = register_of(right_registers + v % 2);
    call_intrinsic(code, "llvm.x86.tileloadd64", {},
                   {columns, code.address(right, code.constant(v * register_bytes), element_type::u8),
                    code.constant(right_pitch)});
    for (std::int64_t block = 0; block < blocks(); ++block)
      call_intrinsic(code, multiply, {}, {sums_of(block, v), register_of(left_registers + block), columns});
  }
}

void matrix_tile::store(Value sums) {
  const std::int64_t pitch = shape_.vectors * register_bytes;
  for (std::int64_t block = 0; block < blocks(); ++block)
    for (std::int64_t v = 0; v < shape_.vectors; ++v) {
      const Value at =
          code.address(sums, code.constant(block * matrix_rows * pitch + v * register_bytes), element_type::u8);
      call_intrinsic(code, "llvm.x86.tilestored64", {}, {sums_of(block, v), at, code.constant(pitch)});
    }
}

void matrix_tile::release() { call_intrinsic(code, "llvm.x86.tilerelease", {}); }

}  // namespace kiln::cpu
