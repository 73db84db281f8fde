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

class normalize_writer {
 public:
  explicit normalize_writer(kernel_emitter& e)
      : e_(e),
        op_(*e.anchor()->op().get_if<normalize>()),
        input_(e.anchor()->inputs()[0]),
        type_(compute_type(input_.type().type)),
        space_(e, input_, op_.axes),
        share_(1.0 / static_cast<double>(space_.count)) {}

  void emit() {
    if (space_.inner) emit_rows();
    else emit_columns();
  }

 private:
  void emit_rows();     // the last axis is combined: lanes hold elements of one row
  void emit_columns();  // the last axis is kept: each lane combines its own elements

  Value read(const position& where, std::int64_t lanes) const {
    evaluator ev(e_);
    return ev.at(input_, where, lanes);
  }
  void store(const position& where, Value result, std::int64_t lanes) const {
    evaluator ev(e_);
    ev.bind(e_.anchor_result(), result);
    ev.store_outputs(where, lanes);
  }
  Value times(Value a, Value b) const { return code_.make<arith::MulFOp>(a, b); }
  Value plus(Value a, Value b) const { return code_.make<arith::AddFOp>(a, b); }
  Value minus(Value a, Value b) const { return code_.make<arith::SubFOp>(a, b); }
  // Returns 1 / sqrt(squares / count + epsilon).
  Value scale_of(Value squares) const {
    mlir::Type type = squares.getType();
    Value mean = times(squares, code_.number(type, share_));
    Value variance = plus(mean, code_.number(type, op_.epsilon));
    Value one = code_.number(type, 1);
    return code_.make<arith::DivFOp>(one, code_.make<math::SqrtOp>(variance).getResult());
  }

  kernel_emitter& e_;
  code_builder& code_ = e_.code;
  const normalize& op_;
  value input_;
  element_type type_;
  reduction_space space_;
  double share_;  // 1 / number of elements that are combined
};

// A block of the kept axis has several vectors, which are computed side by side.
void normalize_writer::emit_columns() {
  std::int64_t native = e_.lanes_for(type_, space_.lane_extent);
  space_.parallel_columns(
      "normalize", type_, space_.count * 4, [&](std::span<const Value> at, Value first, std::int64_t width) {
        std::int64_t vectors = width / native;
        auto each = [&](const position& where, const std::function<void(std::size_t, const position&)>& body) {
          for (std::int64_t v = 0; v < vectors; ++v) {
            position shifted = where;
            shifted[space_.lane_axis].base = code_.add(where[space_.lane_axis].base, v * native);
            body(static_cast<std::size_t>(v), shifted);
          }
        };
        values zeros(static_cast<std::size_t>(vectors), code_.number(code_.type(type_, native), 0)), means;
        if (op_.centered) {
          means = space_.walk_column(
              at, first, native, zeros, [&](const position& where, std::int64_t n, Value, std::span<const Value> s) {
                values next;
                each(where, [&](std::size_t v, const position& p) { next.push_back(plus(s[v], read(p, n))); });
                return next;
              });
          for (Value& mean : means) mean = times(mean, code_.number(mean.getType(), share_));
        }
        auto centered = [&](std::size_t v, Value x) { return op_.centered ? minus(x, means[v]) : x; };
        values scales = space_.walk_column(at, first, native, zeros,
                                           [&](const position& where, std::int64_t n, Value, std::span<const Value> s) {
                                             values next;
                                             each(where, [&](std::size_t v, const position& p) {
                                               Value d = centered(v, read(p, n));
                                               next.push_back(code_.fma(d, d, s[v]));
                                             });
                                             return next;
                                           });
        for (Value& scale : scales) scale = scale_of(scale);
        space_.walk_column(
            at, first, native, {}, [&](const position& where, std::int64_t n, Value, std::span<const Value>) {
              each(where,
                   [&](std::size_t v, const position& p) { store(p, times(centered(v, read(p, n)), scales[v]), n); });
              return values{};
            });
      });
}

// An input that is computed in the kernel is kept on the stack by the first pass that reads it.
void normalize_writer::emit_rows() {
  std::int64_t lanes = e_.lanes_for(type_, space_.lane_extent);
  bool keeps_input = !e_.in_memory(input_);
  e_.parallel("normalize", space_.kept_dims, space_.count * 4, [&](std::span<const Value> at) {
    Value row = keeps_input ? code_.stack(type_, space_.lane_extent) : Value();
    auto keep = [&](const position& where, Value x) {
      if (keeps_input && space_.row_offset(where)) code_.store(row, space_.row_offset(where), type_, x);
    };
    auto again = [&](const position& where, std::int64_t n) {
      bool kept = keeps_input && space_.row_offset(where);
      return kept ? code_.load(row, space_.row_offset(where), type_, n) : read(where, n);
    };
    Value zero = code_.number(code_.type(type_, lanes), 0);
    auto join = [&](std::span<const Value> a, std::span<const Value> b) { return values{plus(a[0], b[0])}; };
    Value mean;
    if (op_.centered) {
      Value sums = space_.walk_row(
          at, lanes, rows_abreast(e_, 4), {zero},
          [&](const position& where, std::int64_t n, Value valid, std::span<const Value> s) {
            Value x = read(where, n);
            keep(where, x);
            return values{plus(s[0], valid ? code_.select(valid, x, zero) : x)};
          },
          join)[0];
      Value sum = code_.horizontal(CombiningKind::ADD, sums);
      mean = times(sum, code_.number(code_.scalar_type(type_), share_));
    }
    auto centered = [&](Value x, std::int64_t n) { return op_.centered ? minus(x, code_.splat(mean, n)) : x; };
    Value squares = space_.walk_row(
        at, lanes, rows_abreast(e_, 4), {zero},
        [&](const position& where, std::int64_t n, Value valid, std::span<const Value> s) {
          Value x = op_.centered ? again(where, n) : read(where, n);
          if (!op_.centered) keep(where, x);
          Value d = centered(x, n);
          if (valid) d = code_.select(valid, d, zero);
          return values{code_.fma(d, d, s[0])};
        },
        join)[0];
    Value scale = scale_of(code_.horizontal(CombiningKind::ADD, squares));
    space_.write_row(at, lanes, [&](const position& where) {
      store(where, times(centered(again(where, lanes), lanes), code_.splat(scale, lanes)), lanes);
    });
  });
}

}  // namespace

void emit_normalize(kernel_emitter& e) {
  if (emit_normalized_depthwise(e) || emit_split_normalize(e)) return;
  value input = e.anchor()->inputs()[0];
  reduction_space probe(e, input, e.anchor()->op().get_if<normalize>()->axes);
  bool fits = probe.inner && probe.single_run() && probe.lane_extent <= longest_stack_row;
  if (!fits && !e.in_memory(input)) e.materialize(input);
  normalize_writer(e).emit();
}

std::vector<candidate> normalize_space(kernel_emitter& e) {
  const instruction* window = find_normalized_window(*e.anchor());
  return window ? depthwise_space(e, *window) : row_choices(e);
}

}  // namespace kiln::cpu
