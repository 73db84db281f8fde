#include "mlir_bridge/gpu/contraction/row_scales.hpp"

#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t lanes = 8;
constexpr std::int64_t matrix_rows = 16, chunks_of_row = 4;

// Returns true if each chunk of A is in one lane of a wave, and lane l has those of row l / 4.
bool holds_chunks_once(const kernel_emitter& e, const matrix_instruction* unit) {
  return e.target.family == target_family::nvidia && unit && unit->m == matrix_rows && !unit->a.whole_row &&
         unit->a.row_divisor == chunks_of_row && unit->a.chunk_divisor == 1 && unit->a.chunks == chunks_of_row;
}

}  // namespace

bool row_scales::apply(const kernel_emitter& e, const contraction_problem& problem) {
  constexpr std::int64_t most_parts = 1024;
  if (!problem.k.is_static() || !problem.m.is_static() || problem.batch != dim(1) || problem.a.along_rows) return false;
  for (const matrix_instruction* unit : find_matrix_instructions(e.target.gpu.matrix, problem.types().factor, false))
    if (unit->m == matrix_rows) {
      if (holds_chunks_once(e, unit)) return true;
      break;
    }
  const std::int64_t of_wave = lanes * e.target.gpu.wave, depth = problem.k.value();
  return problem.a.piece % lanes == 0 && depth % of_wave == 0 && problem.m.value() * (depth / of_wave) <= most_parts;
}

row_scales::row_scales(kernel_emitter& e, const contraction_problem& problem, workgroup& group,
                       const matrix_instruction* unit)
    : e_(e), code_(e.code), problem_(problem), group_(group), unit_(unit) {
  if (holds_chunks_once(e, unit)) sums_ = ceil_div(problem.m.value(), unit->a.part_rows);
  memory_ = group.lds((sums_ ? matrix_rows * group.waves() : problem.m.value() * parts_of_row()) * 4);
}

// A wave's part of a row at a time.
std::int64_t row_scales::parts_of_row() const { return problem_.k.value() / (lanes * e_.target.gpu.wave); }

Value row_scales::add_squares(Value piece, Value sum) const {
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const Value element = code_.lane(piece, lane);
    sum = code_.fma(element, element, sum);
  }
  return sum;
}

void row_scales::add(std::span<const Value> chunks, std::span<Value> sums) const {
  const element_type type = problem_.types().factor;
  const mlir::Type stored = mlir::VectorType::get({lanes}, code_.storage_type(type));
  for (std::size_t part = 0; part < sums.size(); ++part)
    sums[part] = add_squares(code_.to_compute(reinterpret(code_, chunks[part], stored), type), sums[part]);
}

void row_scales::load() {
  if (sums_) return;
  const std::int64_t of_row = problem_.k.value() / lanes, all = problem_.m.value() * of_row;
  evaluator ev(e_);
  for (std::int64_t first = 0; first < all; first += group_.threads()) {
    const Value number = code_.add(group_.thread(), first);
    const Value read = first + group_.threads() > all ? code_.min(number, all - 1) : number;
    const element_request request{.batch = code_.constant(0),
                                  .row = code_.div(read, of_row),
                                  .k_tile = code_.constant(0),
                                  .k_inner = code_.mul(code_.rem(read, of_row), lanes),
                                  .lanes = lanes};
    loaded_.push_back(problem_.a.find(ev, request).elements);
    numbers_.push_back(number);
  }
}

void row_scales::store(std::span<const Value> sums) {
  if (!sums_) return store_loaded();
  for (std::size_t part = 0; part < sums.size(); ++part) {
    Value total = sums[part];
    for (std::int64_t mask = 1; mask < chunks_of_row; mask *= 2)
      total = code_.make<mlir::arith::AddFOp>(total, group_.shuffle_xor(total, mask));
    const Value row =
        code_.add(code_.div(group_.lane(), chunks_of_row), static_cast<std::int64_t>(part) * unit_->a.part_rows);
    code_.when(code_.equal(code_.rem(group_.lane(), chunks_of_row), code_.constant(0)), [&] {
      code_.store(memory_, code_.add(code_.mul(group_.wave(), matrix_rows), row), element_type::f32, total, 1);
    });
  }
}

void row_scales::store_loaded() {
  const std::int64_t all = problem_.m.value() * problem_.k.value() / lanes, wave = group_.wave_size();
  const auto plus = [&](Value a, Value b) { return code_.make<mlir::arith::AddFOp>(a, b).getResult(); };
  for (std::size_t i = 0; i < loaded_.size(); ++i) {
    const Value sum = group_.reduce_wave(add_squares(loaded_[i], code_.number(code_.builder.getF32Type(), 0)), plus);
    const Value counts =
        both(code_, code_.equal(group_.lane(), code_.constant(0)), code_.less(numbers_[i], code_.constant(all)));
    code_.when(counts, [&] { code_.store(memory_, code_.div(numbers_[i], wave), element_type::f32, sum, 1); });
  }
}

Value row_scales::of(Value row) const {
  const std::int64_t parts = sums_ ? group_.waves() : parts_of_row();
  Value total;
  for (std::int64_t i = 0; i < parts; ++i) {
    const Value place = sums_ ? code_.add(row, i * matrix_rows) : code_.add(code_.mul(row, parts), i);
    const Value part = code_.load(memory_, place, element_type::f32, 1);
    total = total ? code_.make<mlir::arith::AddFOp>(total, part).getResult() : part;
  }
  const auto number = [&](double n) { return code_.number(total.getType(), n); };
  const Value mean = code_.make<mlir::arith::MulFOp>(total, number(1.0 / static_cast<double>(problem_.k.value())));
  const Value root =
      code_.make<mlir::math::SqrtOp>(code_.make<mlir::arith::AddFOp>(mean, number(*problem_.epsilon)).getResult());
  return code_.make<mlir::arith::DivFOp>(number(1), root);
}

}  // namespace kiln::gpu
