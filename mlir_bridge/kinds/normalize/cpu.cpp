// normalize: mean and variance in two passes (a single pass would lose digits if the mean is large), then the scaled
// difference.
#include "ir/normalized_window.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/reduction_space.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/convolution/cpu/depthwise.hpp"
#include "mlir_bridge/kinds/normalize/cpu/split_rows.hpp"
#include "mlir_bridge/kinds/normalize/generators.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;
namespace math = mlir::math;
using mlir::vector::CombiningKind;

constexpr std::int64_t longest_stack_row = 8192;  // elements of f32

}  // namespace

void emit_normalize(kernel_emitter& e) {
  if (emit_normalized_depthwise(e) || emit_split_normalize(e)) return;
  const auto& op = *e.anchor()->op().get_if<normalize>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  element_type type = compute_type(input.type().type);
  {
    reduction_space probe(e, input, op.axes);
    bool fits = probe.inner && probe.single_run() && probe.lane_extent <= longest_stack_row;
    if (!fits && !e.in_memory(input)) e.materialize(input);
  }
  reduction_space space(e, input, op.axes);
  double share = 1.0 / static_cast<double>(space.count);
  auto read = [&](const position& where, std::int64_t lanes) {
    evaluator ev(e);
    return ev.at(input, where, lanes);
  };
  auto store = [&](const position& where, Value result, std::int64_t lanes) {
    evaluator ev(e);
    ev.bind(e.anchor_result(), result);
    ev.store_outputs(where, lanes);
  };
  auto times = [&](Value a, Value b) { return code.make<arith::MulFOp>(a, b).getResult(); };
  auto plus = [&](Value a, Value b) { return code.make<arith::AddFOp>(a, b).getResult(); };
  auto minus = [&](Value a, Value b) { return code.make<arith::SubFOp>(a, b).getResult(); };
  // 1 / sqrt(squares / count + epsilon)
  auto scale_of = [&](Value squares) {
    Value variance =
        plus(times(squares, code.number(squares.getType(), share)), code.number(squares.getType(), op.epsilon));
    return code.make<arith::DivFOp>(code.number(squares.getType(), 1), code.make<math::SqrtOp>(variance).getResult())
        .getResult();
  };

  if (!space.inner) {
    std::int64_t native = e.lanes_for(type, space.lane_extent);
    space.parallel_columns(
        "normalize", type, space.count * 4, [&](std::span<const Value> at, Value first, std::int64_t width) {
          std::int64_t vectors = width / native;
          auto each = [&](const position& where, const std::function<void(std::size_t, const position&)>& body) {
            for (std::int64_t v = 0; v < vectors; ++v) {
              position shifted = where;
              shifted[space.lane_axis].base = code.add(where[space.lane_axis].base, v * native);
              body(static_cast<std::size_t>(v), shifted);
            }
          };
          values zeros(static_cast<std::size_t>(vectors), code.number(code.type(type, native), 0)), means;
          if (op.centered) {
            means = space.walk_column(
                at, first, native, zeros, [&](const position& where, std::int64_t n, Value, std::span<const Value> s) {
                  values next;
                  each(where, [&](std::size_t v, const position& p) { next.push_back(plus(s[v], read(p, n))); });
                  return next;
                });
            for (Value& mean : means) mean = times(mean, code.number(mean.getType(), share));
          }
          auto centered = [&](std::size_t v, Value x) { return op.centered ? minus(x, means[v]) : x; };
          values scales = space.walk_column(
              at, first, native, zeros, [&](const position& where, std::int64_t n, Value, std::span<const Value> s) {
                values next;
                each(where, [&](std::size_t v, const position& p) {
                  Value d = centered(v, read(p, n));
                  next.push_back(code.fma(d, d, s[v]));
                });
                return next;
              });
          for (Value& scale : scales) scale = scale_of(scale);
          space.walk_column(
              at, first, native, {}, [&](const position& where, std::int64_t n, Value, std::span<const Value>) {
                each(where,
                     [&](std::size_t v, const position& p) { store(p, times(centered(v, read(p, n)), scales[v]), n); });
                return values{};
              });
        });
    return;
  }
  std::int64_t lanes = e.lanes_for(type, space.lane_extent);
  bool keeps_input = !e.in_memory(input);
  e.parallel("normalize", space.kept_dims, space.count * 4, [&](std::span<const Value> at) {
    Value row = keeps_input ? code.stack(type, space.lane_extent) : Value();
    auto again = [&](const position& where, std::int64_t n) {
      return keeps_input && space.row_offset(where) ? code.load(row, space.row_offset(where), type, n) : read(where, n);
    };
    Value zero = code.number(code.type(type, lanes), 0);
    auto join = [&](std::span<const Value> a, std::span<const Value> b) { return values{plus(a[0], b[0])}; };
    Value mean;
    bool kept = false;
    if (op.centered) {
      Value sums = space.walk_row(
          at, lanes, rows_abreast(e, 4), {zero},
          [&](const position& where, std::int64_t n, Value valid, std::span<const Value> s) {
            Value x = read(where, n);
            if (keeps_input && space.row_offset(where)) code.store(row, space.row_offset(where), type, x);
            return values{plus(s[0], valid ? code.select(valid, x, zero) : x)};
          },
          join)[0];
      mean = times(code.horizontal(CombiningKind::ADD, sums), code.number(code.scalar_type(type), share));
      kept = true;
    }
    auto centered = [&](Value x, std::int64_t n) { return op.centered ? minus(x, code.splat(mean, n)) : x; };
    Value squares = space.walk_row(
        at, lanes, rows_abreast(e, 4), {zero},
        [&](const position& where, std::int64_t n, Value valid, std::span<const Value> s) {
          Value x = kept ? again(where, n) : read(where, n);
          if (!kept && keeps_input && space.row_offset(where)) code.store(row, space.row_offset(where), type, x);
          Value d = centered(x, n);
          if (valid) d = code.select(valid, d, zero);
          return values{code.fma(d, d, s[0])};
        },
        join)[0];
    Value scale = scale_of(code.horizontal(CombiningKind::ADD, squares));
    space.write_row(at, lanes, [&](const position& where) {
      store(where, times(centered(again(where, lanes), lanes), code.splat(scale, lanes)), lanes);
    });
  });
}

std::vector<candidate> normalize_space(kernel_emitter& e) {
  const instruction* window = find_normalized_window(*e.anchor());
  return window ? depthwise_space(e, *window) : row_choices(e);
}

}  // namespace kiln::cpu
