#include "mlir_bridge/kinds/normalize/cpu/split_rows.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/reduction_space.hpp"
#include "mlir_bridge/cpu/choices.hpp"

namespace kiln::cpu {

using namespace codegen;

namespace {

namespace arith = mlir::arith;
using mlir::vector::CombiningKind;

// More rows than this keep all threads busy without parts. Shorter rows and parts are not worth a second launch.
constexpr std::int64_t most_rows = 4, fewest_elements = 32768, fewest_of_part = 256;

// A part of a row is what lies at one index of its first axis. The first stage computes the mean of each part and the
// sum of the squared differences from it. In the second stage, each item merges those of its row (Chan, Golub and
// LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances") and writes its part.
class split_normalize {
 public:
  split_normalize(kernel_emitter& emitter, std::int64_t axis)
      : e(emitter),
        code(emitter.code),
        op(*e.anchor()->op().get_if<normalize>()),
        input(e.anchor()->inputs()[0]),
        type(compute_type(input.type().type)),
        parts(e.dims(input)[static_cast<std::size_t>(axis)]),
        space(e, input, without(op.axes, axis)),
        lanes(e.lanes_for(type, space.lane_extent)) {
    along =
        static_cast<std::size_t>(std::ranges::find(space.kept, static_cast<std::size_t>(axis)) - space.kept.begin());
    rows = space.kept_dims;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(along));
  }

  void emit() {
    const std::int64_t count = std::accumulate(rows.begin(), rows.end(), std::int64_t{1}, std::multiplies<>());
    const buffer means = e.add_scratch(type, {count, parts}), squares = e.add_scratch(type, {count, parts});
    e.parallel("statistics", space.kept_dims, space.count * 3, [&](std::span<const Value> at) {
      Value mean;
      if (op.centered) {
        mean = times(sum_of(at, [](Value x) { return x; }), 1.0 / static_cast<double>(space.count));
        code.store(e.pointer(means), place(at), type, mean);
      }
      const Value sum = sum_of(at, [&](Value x) {
        if (op.centered) x = code.make<arith::SubFOp>(x, code.splat(mean, code_builder::lanes_of(x)));
        return code.make<arith::MulFOp>(x, x).getResult();
      });
      code.store(e.pointer(squares), place(at), type, sum);
    });
    e.parallel("normalize", space.kept_dims, space.count * 2, [&](std::span<const Value> at) {
      const Value row = code.sub(place(at), at[along]);
      Value mean, sum = over_parts([&](Value p, std::int64_t n) { return load(squares, row, p, n); });
      if (op.centered) {
        mean = times(over_parts([&](Value p, std::int64_t n) { return load(means, row, p, n); }),
                     1.0 / static_cast<double>(parts));
        const Value apart = over_parts([&](Value p, std::int64_t n) {
          const Value d = code.make<arith::SubFOp>(load(means, row, p, n), code.splat(mean, n));
          return code.make<arith::MulFOp>(d, d).getResult();
        });
        sum = code.make<arith::AddFOp>(sum, times(apart, static_cast<double>(space.count)));
      }
      const Value variance = code.make<arith::AddFOp>(times(sum, 1.0 / static_cast<double>(space.count * parts)),
                                                      code.number(sum.getType(), op.epsilon));
      const Value scale =
          code.make<arith::DivFOp>(code.number(sum.getType(), 1), code.make<mlir::math::SqrtOp>(variance).getResult());
      space.write_row(at, lanes, [&](const position& where) {
        Value x = read(where, lanes);
        if (op.centered) x = code.make<arith::SubFOp>(x, code.splat(mean, lanes));
        evaluator ev(e);
        ev.bind(e.anchor_result(), code.make<arith::MulFOp>(x, code.splat(scale, lanes)));
        ev.store_outputs(where, lanes);
      });
    });
  }

 private:
  static std::vector<std::int64_t> without(std::vector<std::int64_t> axes, std::int64_t axis) {
    std::erase(axes, axis);
    return axes;
  }
  Value read(const position& where, std::int64_t n) {
    evaluator ev(e);
    return ev.at(input, where, n);
  }
  Value times(Value x, double factor) { return code.make<arith::MulFOp>(x, code.number(x.getType(), factor)); }
  // The number of a part in the scratch buffers.
  Value place(std::span<const Value> at) {
    values others(at.begin(), at.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(along));
    const Value row = others.empty() ? code.constant(0) : code.linearize(others, rows);
    return code.add(code.mul(row, parts), at[along]);
  }
  Value load(const buffer& from, Value row, Value part, std::int64_t n) {
    return code.load(e.pointer(from), code.add(row, part), type, n);
  }

  // The sum of f over a part of a row.
  Value sum_of(std::span<const Value> at, const std::function<Value(Value)>& f) {
    const Value zero = code.number(code.type(type, lanes), 0);
    const Value sums = space.walk_row(
        at, lanes, rows_abreast(e, 4), {zero},
        [&](const position& where, std::int64_t n, Value valid, std::span<const Value> s) {
          const Value x = f(read(where, n));
          return values{code.make<arith::AddFOp>(s[0], valid ? code.select(valid, x, zero) : x)};
        },
        [&](std::span<const Value> a, std::span<const Value> b) {
          return values{code.make<arith::AddFOp>(a[0], b[0])};
        })[0];
    return code.horizontal(CombiningKind::ADD, sums);
  }

  // The sum of of(first part, number of parts) over all parts of a row.
  Value over_parts(const std::function<Value(Value, std::int64_t)>& of) {
    const std::int64_t wide = e.lanes_for(type, parts), whole = parts / wide * wide;
    auto add = [&](std::int64_t n) {
      return [&, n](Value p, std::span<const Value> s) { return values{code.make<arith::AddFOp>(s[0], of(p, n))}; };
    };
    Value sum = code.horizontal(CombiningKind::ADD,
                                code.loop(0, whole, wide, {code.number(code.type(type, wide), 0)}, add(wide))[0]);
    return code.loop(whole, parts, 1, {sum}, add(1))[0];
  }

  kernel_emitter& e;
  code_builder& code;
  const normalize& op;
  const value input;
  const element_type type;
  const std::int64_t parts;  // of a row
  reduction_space space;     // of a part
  const std::int64_t lanes;
  // Where the parts' axis is among space.kept, and the extents of the others.
  std::size_t along = 0;
  std::vector<std::int64_t> rows;
};

}  // namespace

bool emit_split_normalize(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<normalize>();
  const value input = e.anchor()->inputs()[0];
  if (op.axes.size() < 2) return false;
  const std::vector<std::int64_t> dims = e.dims(input);
  const std::int64_t axis = std::ranges::min(op.axes), parts = dims[static_cast<std::size_t>(axis)];
  std::int64_t elements = 1;
  for (std::int64_t a : op.axes) elements *= dims[static_cast<std::size_t>(a)];
  const std::int64_t all = std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  const bool last = std::ranges::max(op.axes) + 1 == static_cast<std::int64_t>(dims.size());
  if (!last || parts < 2 || elements < fewest_elements || elements / parts < fewest_of_part ||
      all / elements > most_rows)
    return false;
  e.materialize(input);
  split_normalize(e, axis).emit();
  return true;
}

}  // namespace kiln::cpu
