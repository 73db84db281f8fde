#include "mlir_bridge/gpu/contraction/epilogue.hpp"

#include <numeric>

#include "ir/ops/elementwise.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

bool has_long_epilogue(const kernel_emitter& e) {
  std::vector<const instruction*> open{e.anchor()};
  while (!open.empty()) {
    const instruction* at = open.back();
    open.pop_back();
    const auto* f = at->op().get_if<elementwise>();
    if (f && (f->function == scalar_function::erf || f->function == scalar_function::tanh)) return true;
    open.insert(open.end(), at->users().begin(), at->users().end());
  }
  return false;
}

std::int64_t epilogue_lanes(const kernel_emitter& e, const contraction_problem& problem, std::int64_t columns) {
  std::int64_t lanes = 8;
  for (value v : e.outputs())
    lanes = std::min<std::int64_t>(lanes, std::max<std::int64_t>(1, 128 / std::max(8, storage_bits(v.type().type))));
  return std::gcd(lanes, std::gcd(columns, std::gcd(e.factor(problem.n), e.factor(problem.last_axis))));
}

void result_writer::add(Value sums, Value batch, Value row, Value column, bool row_may_be_beyond,
                        bool column_may_be_beyond, Value second) {
  code_builder& code = e_.code;
  const std::int64_t lanes = code_builder::lanes_of(sums);
  result r;
  Value safe_row = row, safe_column = column;
  if (row_may_be_beyond) {
    r.counts = code.less(row, e_.size(problem_.m));
    safe_row = e_.min(row, problem_.m - 1);
  }
  if (column_may_be_beyond) {
    r.counts = both(code, r.counts, code.less(column, e_.size(problem_.n)));
    safe_column = e_.min(column, problem_.n - lanes);
  }
  r.where = problem_.locate(code, batch, safe_row, safe_column, lanes);
  const value anchor = e_.anchor_result();
  const element_type sum = problem_.types().sum, type = anchor.type().type;
  evaluator ev(e_);
  // Floating-point sums are not rounded to the anchor's type; only stores round.
  const bool same = code.scalar_type(sum) == code.scalar_type(type);
  ev.bind(anchor, same ? sums : convert_element(code, sums, sum, type));
  if (second) ev.bind(problem_.second->result, same ? second : convert_element(code, second, sum, type));
  for (value v : e_.outputs()) r.outputs.push_back(ev.at(v, r.where, lanes));
  pending_.push_back(std::move(r));
}

void result_writer::flush() {
  for (const result& r : pending_) {
    auto store = [&] {
      evaluator ev(e_);
      for (std::size_t i = 0; i < r.outputs.size(); ++i) ev.store(e_.output(i), r.where, r.outputs[i]);
    };
    if (r.counts) e_.code.when(r.counts, store);
    else store();
  }
  pending_.clear();
}

void write_tile(kernel_emitter& e, const contraction_problem& problem, multiplier& product, const values& sums,
                const tile_place& place, Value memory) {
  code_builder& code = e.code;
  const slab_geometry& slab = product.slabs();
  const element_type sum = problem.types().sum;
  const std::int64_t element_bytes = storage_bits(sum) / 8;
  const std::int64_t lanes = epilogue_lanes(e, problem, slab.columns), across = slab.columns / lanes,
                     vectors = slab.rows * across;
  Value ours = byte_address(code, memory, code.mul(slab.owner, slab.rows * slab.pitch() * element_bytes));
  Value first_m = code.add(place.first_m, slab.first_row), first_n = code.add(place.first_n, slab.first_column);
  // ptxas takes longer for a long function that is written out for each vector than for the rest of the kernel.
  const bool loops = e.target.family == target_family::nvidia && has_long_epilogue(e);
  for (std::int64_t i = 0; i < slab.count; ++i) {
    if (i) product.synchronize();
    product.write_slab(i, sums, ours);
    product.synchronize();
    result_writer writer(e, problem);
    auto read = [&](Value vector, bool last_may_be_missing) {
      Value inside = last_may_be_missing ? code.min(vector, vectors - 1) : vector;
      Value row = code.div(inside, across), column = code.mul(code.rem(inside, across), lanes);
      Value offset = code.mul(code.add(code.mul(row, slab.pitch()), column), element_bytes);
      const auto alignment = static_cast<unsigned>(std::min<std::int64_t>(16, lanes * element_bytes));
      Value elements =
          code.make<mlir::LLVM::LoadOp>(code.type(sum, lanes), byte_address(code, ours, offset), alignment);
      // Vectors beyond the slab are beyond the result's last row.
      Value m = code.add(first_m, code.add(row, i * slab.rows));
      if (last_may_be_missing) m = code.select(code.less(vector, code.constant(vectors)), m, e.size(problem.m));
      writer.add(elements, place.batch, m, code.add(first_n, column), !place.all_rows || last_may_be_missing,
                 !place.all_columns);
    };
    const std::int64_t at_once = 2 * slab.members;
    if (loops && vectors % at_once == 0 && vectors > at_once) {
      code.loop(0, vectors, at_once, [&](Value first) {
        for (std::int64_t v = 0; v < at_once; v += slab.members) read(code.add(code.add(slab.member, v), first), false);
        writer.flush();
      });
      continue;
    }
    for (std::int64_t v = 0; v < vectors; v += slab.members) read(code.add(slab.member, v), v + slab.members > vectors);
    writer.flush();
  }
}

}  // namespace kiln::gpu
