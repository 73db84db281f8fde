#include "mlir_bridge/gpu/contraction/problem.hpp"

#include <algorithm>

#include "ir/error.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"

namespace kiln::gpu {

product_types types_of(element_type a, element_type b) {
  using enum element_type;
  if (a == b && (a == f16 || a == bf16 || a == f32)) return {a, f32};
  // Floats of 8 bits are exact in f16.
  if (is_float(a) && storage_bits(a) == 8) return {f16, f32};
  if ((a == i8 || a == u8) && b == i8) return {i8, i32, a == u8};
  if (a == f64) return {f64, f64};
  if (storage_bits(a) == 64) return {i64, i64};
  // Other integers are widened when they are stored to shared memory.
  return {i32, i32};
}

bool is_shifted(const gpu_row& row, const product_types& types) {
  if (!types.unsigned_a) return false;
  switch (row.matrix) {
    case matrix_unit::mfma_gfx908:
    case matrix_unit::mfma_gfx90a:
    case matrix_unit::mfma_gfx942:
    case matrix_unit::mfma_gfx950: return true;
    case matrix_unit::none: return row.dots == dot_unit::f16_and_i8;
    default: return false;
  }
}

bool divides(std::int64_t by, const dim& size) { return codegen::known_factor(size) % by == 0; }

std::int64_t usual_size(const dim& size) try {
  constexpr std::int64_t usual = 32;
  dim_bindings values;
  for (const std::string& symbol : size.symbols()) values[symbol] = usual;
  return size.is_static() ? size.value() : std::max<std::int64_t>(1, size.substitute(values).value());
} catch (const error&) {
  return 1;  // a quotient by a size that is 0 for the usual values
}

product_types contraction_problem::types() const { return types_of(a.type, b.type); }

axis_index axis_at(Value base, std::int64_t low, std::int64_t high, std::int64_t multiple, std::int64_t step) {
  axis_index index;
  index.base = base;
  index.step = step;
  index.low = low;
  index.high = high;
  index.multiple = multiple;
  return index;
}

}  // namespace kiln::gpu
