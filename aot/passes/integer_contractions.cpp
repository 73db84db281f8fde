#include "aot/passes/integer_contractions.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "aot/passes/facts.hpp"
#include "aot/passes/integer_weights.hpp"
#include "aot/passes/quantized_tensor.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/rewrite_log.hpp"

namespace kiln {
namespace {

using enum scalar_function;
constexpr auto i32 = element_type::i32, u8 = element_type::u8, f32 = element_type::f32;

// --- activations become unsigned

// Returns q + 128 as u8, for a tensor q of i8.
value made_unsigned(rewriter& write, value q) {
  const auto& dims = q.type().dims;
  auto plus_128 = [&](value x) { return write.apply(add, {x, write.splat(x.type(), 128)}); };
  value x = q.producer->op().is<convert>() ? q.producer->inputs()[0] : value{};
  // q is the result of QuantizeLinear, which ends with clamp(x, -128, 127).
  if (x && is_float(x) && is_function(x, clamp) && is_splat(x.producer->inputs()[1], -128) &&
      is_splat(x.producer->inputs()[2], 127)) {
    value moved = plus_128(x.producer->inputs()[0]);
    const shape type{moved.type().type, dims};
    return write.convert_to(write.apply(clamp, {moved, write.splat(type, 0), write.splat(type, 255)}), u8);
  }
  return write.convert_to(plus_128(write.convert_to(q, i32)), u8);
}

bool is_conversion_from_i8(const instruction& at) {
  const auto* c = at.op().get_if<convert>();
  return c && (c->type == f32 || c->type == i32) && at.inputs()[0].type().type == element_type::i8;
}

// Makes QuantizeLinear to i8 produce u8 for all readers that convert its result. Otherwise the sums would have to be
// corrected for the sign of each factor, and a tensor with both kinds of readers would be stored twice.
bool make_activations_unsigned(module& m) {
  std::map<value, value> done;
  for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
    instruction& at = *here;
    if (at.op().is<convert>() && at.outputs()[0].type == element_type::i8 && is_float(at.inputs()[0]) &&
        std::ranges::any_of(at.users(), [](const instruction* user) { return is_conversion_from_i8(*user); })) {
      rewriter write(m, here);
      done[at.output()] = made_unsigned(write, at.output());
    } else if (is_conversion_from_i8(at) && done.contains(at.inputs()[0])) {
      rewriter write(m, here);
      value wide = write.convert_to(done.at(at.inputs()[0]), at.outputs()[0].type);
      m.replace(at.output(), write.apply(sub, {wide, write.splat(wide.type(), 128)}));
    }
  }
  return !done.empty();
}

// --- one contraction

// The axis along which the columns lie, in the weights and in the result.
struct column_axes {
  std::size_t weights, result;
};

column_axes columns_of(const instruction& at) {
  const std::size_t rank = at.outputs()[0].rank();
  const auto* d = at.op().get_if<dot>();
  return d ? column_axes{rank - (d->transpose_b ? 2 : 1), rank - 1} : column_axes{0, 1};
}

class rewritten_contraction {
 public:
  rewritten_contraction(rewriter& writer, instruction& contraction, const quantized_tensor& left,
                        const quantized_tensor& right)
      : write(writer),
        at(contraction),
        left_(left),
        right_(right),
        axes_(columns_of(contraction)),
        product_(contraction.op().get_if<dot>()) {}

  // Returns the value that replaces the contraction, or null and the reason.
  value make(std::string_view& reason) {
    reason = find_parameters();
    if (!reason.empty()) return {};
    value a =
        moved(write, left_, left_.elements.type().type == u8 ? left_.elements : made_unsigned(write, left_.elements));
    value b = write.constant(weights_.elements);
    operation op = at.op();
    if (product_) op = dot{product_->transpose_a, product_->transpose_b, i32};
    else a = padded(a, op);
    return scaled(corrected(write.add(op, {a, b}), a));
  }

 private:
  std::string_view find_parameters() {
    if (left_.scale && !(left_scale_ = single_element(write, left_.scale)))
      return "the activations have more than one scale";
    if (left_.zero && !(left_zero_ = single_element(write, left_.zero)))
      return "the activations have more than one zero point";
    zero_ = static_cast<std::int64_t>(left_.known_zero) + (left_.elements.type().type == u8 ? 0 : 128);
    auto parameter = [&](value v) {
      const auto axis = axis_before_movement(right_, axes_.weights);
      if (value one = single_element(write, v)) return one;
      return axis ? along_one_axis(v, *axis) : value{};
    };
    std::vector<std::int64_t> zeros{static_cast<std::int64_t>(right_.known_zero)};
    if (right_.zero) {
      value zero = parameter(right_.zero);
      auto numbers = zero ? constant_numbers(zero) : std::nullopt;
      if (!numbers) return "the weights' zero point is not constant, or not one for each column";
      zeros.clear();
      for (double number : *numbers) zeros.push_back(static_cast<std::int64_t>(number + right_.known_zero));
    }
    if (right_.scale) {
      right_scale_ = parameter(right_.scale);
      if (!right_scale_) return "the weights' scale is not one for each column";
    }
    literal data = *module::constant(right_.elements);
    for (const instruction* step : right_.movement) data = step->op().evaluate(std::span(&data, 1))[0];
    weights_ = make_integer_weights(data, axes_.weights, zeros);
    if (!weights_.zeros.empty() && !product_) return "the weights' zero point does not fit into signed bytes";
    const std::int64_t most = *std::ranges::max_element(weights_.magnitudes);
    if (is_float(at.output()) && most > std::numeric_limits<std::int32_t>::max() / 255)
      return "the sums may not fit into 32 bits";
    return {};
  }

  static std::optional<std::vector<double>> constant_numbers(value v) {
    while (v.producer->op().is<convert>() || v.producer->op().is<reshape>()) v = v.producer->inputs()[0];
    const literal* data = module::constant(v);
    return data ? std::optional(data->to_doubles()) : std::nullopt;
  }

  // Fills the padding of a convolution with the zero point, if that is not 0.
  value padded(value image, operation& op) {
    convolution c = *op.get_if<convolution>();
    auto none = [](const std::vector<std::int64_t>& pads) {
      return std::ranges::all_of(pads, [](std::int64_t each) { return each == 0; });
    };
    if ((none(c.pads_begin) && none(c.pads_end)) || (!left_zero_ && zero_ == 0)) return image;
    pad around{std::vector<std::int64_t>(2), std::vector<std::int64_t>(2)};
    around.before.insert(around.before.end(), c.pads_begin.begin(), c.pads_begin.end());
    around.after.insert(around.after.end(), c.pads_end.begin(), c.pads_end.end());
    if (!left_zero_) around.fill = static_cast<double>(zero_);
    c.pads_begin.assign(c.pads_begin.size(), 0), c.pads_end = c.pads_begin;
    op = c;
    value result = write.add(around, {image});
    if (!left_zero_) return result;
    std::vector<dim> pixels = image.type().dims;
    pixels[0] = pixels[1] = 1;
    value inside = write.add(around, {write.splat({element_type::boolean, pixels}, 1)});
    value zero = write.convert_to(zero_point(), u8);
    return write.apply(
        where, {write.broadcast_to(inside, result.type().dims), result, write.broadcast_to(zero, result.type().dims)});
  }

  // Returns the zero point of the activations, computed at run time, in i32.
  value zero_point() {
    value zero = write.convert_to(left_zero_, i32);
    return zero_ ? write.apply(add, {zero, write.splat(zero.type(), static_cast<double>(zero_))}) : zero;
  }

  // Returns one number per column, reshaped so that it broadcasts to `like`.
  value for_columns(value numbers, value like) {
    if (numbers.type().elements() == dim(1)) return write.broadcast_to(write.reshape_to(numbers, {}), like.type().dims);
    std::vector<dim> along(like.type().rank(), dim(1));
    along[axes_.result] = numbers.type().elements();
    return write.broadcast_to(write.reshape_to(numbers, along), like.type().dims);
  }

  value column_numbers(const std::vector<std::int64_t>& numbers, std::int64_t factor = 1) {
    std::vector<std::int32_t> narrow;
    // Wraps modulo 2^32, as the sums do.
    for (std::int64_t n : numbers) narrow.push_back(static_cast<std::int32_t>(n * factor));
    return write.constant(literal::of(shape{i32, {static_cast<std::int64_t>(narrow.size())}}, narrow));
  }

  // Computes Σ (a − zero of a) × (b − zero of b) from Σ a × b.
  value corrected(value sum, value a) {
    if (left_zero_)
      sum = write.apply(sub, {sum, write.apply(mul, {write.broadcast_to(zero_point(), sum.type().dims),
                                                     for_columns(column_numbers(weights_.sums), sum)})});
    else if (zero_ != 0) sum = write.apply(sub, {sum, for_columns(column_numbers(weights_.sums, zero_), sum)});
    if (weights_.zeros.empty()) return sum;
    const std::size_t rank = a.type().rank(), depth = rank - (product_->transpose_a ? 2 : 1);
    value rows =
        write.add(reduce{reduction_kind::sum, {static_cast<std::int64_t>(depth)}, true}, {write.convert_to(a, i32)});
    std::vector<dim> dims = sum.type().dims;
    dims.back() = 1;
    rows = write.broadcast_to(write.reshape_to(rows, dims), sum.type().dims);
    return write.apply(sub, {sum, write.apply(mul, {rows, for_columns(column_numbers(weights_.zeros), sum)})});
  }

  value scaled(value sum) {
    const element_type type = at.outputs()[0].type;
    if (!is_float(type)) return write.convert_to(sum, type);
    value result = write.convert_to(sum, f32);
    value scale = right_scale_ ? write.convert_to(right_scale_, f32) : value{};
    if (left_scale_) {
      value left = write.convert_to(left_scale_, f32);
      scale = scale ? write.apply(mul, {scale, write.broadcast_to(left, scale.type().dims)}) : left;
    }
    if (scale) result = write.apply(mul, {result, for_columns(scale, result)});
    return write.convert_to(result, type);
  }

  rewriter& write;
  instruction& at;
  const quantized_tensor &left_, &right_;
  const column_axes axes_;
  const dot* product_;
  integer_weights weights_;
  // Zero point of the activations; left_zero_, if set, is added to it.
  std::int64_t zero_ = 0;
  value left_zero_ = {}, left_scale_ = {}, right_scale_ = {};
};

bool is_candidate(const instruction& at) {
  const auto* c = at.op().get_if<convolution>();
  if (!at.op().is<dot>() && !(c && c->layout == tensor_layout::channels_first)) return false;
  const shape& weights = at.inputs()[1].type();
  const bool several = at.op().is<dot>() && std::any_of(weights.dims.begin(), weights.dims.end() - 2,
                                                        [](const dim& d) { return !(d == dim(1)); });
  return weights.is_static() && weights.element_count() > 0 && !several;
}

}  // namespace

bool integer_contractions::apply(module& m) const {
  bool changed = make_activations_unsigned(m);
  for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
    instruction& at = *here;
    if (!m.has_uses(&at) || !is_candidate(at)) continue;
    auto right = find_quantized(at.inputs()[1]);
    if (!right || !module::constant(right->elements) || is_float(right->elements)) continue;
    auto left = find_quantized(at.inputs()[0]);
    if (!left || module::constant(left->elements) || is_float(left->elements)) continue;
    rewriter write(m, here);
    std::string_view reason;
    value made = rewritten_contraction(write, at, *left, *right).make(reason);
    if (!made) {
      if (log) log->refused(name(), reason, at.origin());
      continue;
    }
    if (log) log->fired(name(), at.op().is<dot>() ? "integer_dot" : "integer_convolution", at.origin());
    m.replace(at.output(), made);
    changed = true;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
