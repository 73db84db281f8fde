#include "aot/onnx/bounded_masks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

struct extremes {
  double low, high;
};

// Returns none for types whose extremes a double cannot represent.
std::optional<extremes> extremes_of(element_type type) {
  if (is_float(type))
    return extremes{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  const int bits = storage_bits(type);
  if (!is_integer(type) || bits > 32) return std::nullopt;
  const double all = std::ldexp(1.0, bits);
  return is_signed_integer(type) ? extremes{-all / 2, all / 2 - 1} : extremes{0, all - 1};
}

// The axes that an operation combines, and the neutral element of the combination.
struct combination {
  std::vector<std::int64_t> axes;
  std::optional<double> neutral;
};

std::optional<double> neutral_of(reduction_kind kind, element_type type) {
  auto extremes = extremes_of(type);
  switch (kind) {
    case reduction_kind::sum: return 0;
    case reduction_kind::mean: return is_float(type) ? std::optional(0.0) : std::nullopt;
    case reduction_kind::product: return 1;
    case reduction_kind::max: return extremes ? std::optional(extremes->low) : std::nullopt;
    case reduction_kind::min: return extremes ? std::optional(extremes->high) : std::nullopt;
  }
  return std::nullopt;
}

combination combination_of(const instruction& i) {
  const shape& type = i.inputs()[0].type();
  if (const auto* op = i.op().get_if<reduce>()) return {op->axes, neutral_of(op->kind, type.type)};
  // arg-max takes the first of equal elements, so padding, which is last, cannot win.
  if (const auto* op = i.op().get_if<arg_reduce>(); op && !op->select_last)
    return {{op->axis}, neutral_of(op->largest ? reduction_kind::max : reduction_kind::min, type.type)};
  if (const auto* op = i.op().get_if<softmax>()) return {{op->axis}, neutral_of(reduction_kind::max, type.type)};
  if (const auto* op = i.op().get_if<cumulative_sum>()) return {{op->axis}, 0.0};
  return {};
}

class masking {
 public:
  masking(module& main, instruction& i, std::span<const bounded_dim> counts) : main_(main), i_(i), counts_(counts) {}

  instruction* run() {
    combination what = i_.inputs().empty() ? combination{} : combination_of(i_);
    if (!what.neutral) return nullptr;
    const auto dims = i_.inputs()[0].type().dims;
    std::vector<value> over;  // counts
    std::int64_t elements = 1;
    for (std::int64_t axis : what.axes) {
      auto at = static_cast<std::size_t>(normalize_axis(axis, dims.size()));
      auto known = std::ranges::find(counts_, dims[at], &bounded_dim::symbol);
      if (known != counts_.end()) {
        over.push_back(known->count);
        mask(at, known->count, *what.neutral);
      } else if (dims[at].is_static()) {
        elements *= dims[at].value();
      }
    }
    const auto* op = i_.op().get_if<reduce>();
    return op && op->kind == reduction_kind::mean ? mean(*op, over, elements) : &i_;
  }

 private:
  value add(operation op, std::vector<value> inputs) {
    value made = main_.insert(&i_, std::move(op), std::move(inputs));
    made.producer->set_origin(i_.origin());
    return made;
  }
  value number(element_type type, double x) { return main_.add_constant(literal::scalar(type, x)); }

  void mask(std::size_t axis, value count, double neutral) {
    value x = i_.inputs()[0];
    const auto dims = x.type().dims;
    value place = add(iota{element_type::i64, dims, static_cast<std::int64_t>(axis)}, {});
    value there = add(elementwise{scalar_function::less}, {place, add(broadcast{dims}, {count})});
    value other = add(broadcast{dims}, {number(x.type().type, neutral)});
    main_.set_input(&i_, 0, add(elementwise{scalar_function::where}, {there, x, other}));
  }

  // Replaces the mean by the sum divided by the number of valid elements.
  instruction* mean(reduce op, const std::vector<value>& counts, std::int64_t elements) {
    op.kind = reduction_kind::sum;
    value sum = add(op, {i_.inputs()[0]});
    const shape type = sum.type();
    value divisor = number(type.type, static_cast<double>(elements));
    for (value c : counts)
      divisor = add(elementwise{scalar_function::mul}, {divisor, add(convert{type.type}, {add(reshape{{}}, {c})})});
    value result = add(elementwise{scalar_function::div}, {sum, add(broadcast{type.dims}, {divisor})});
    main_.replace({&i_, 0}, result);
    main_.erase(&i_);
    return sum.producer;
  }

  module& main_;
  instruction& i_;
  std::span<const bounded_dim> counts_;
};

}  // namespace

instruction* mask_padding(module& main, instruction& i, std::span<const bounded_dim> counts) {
  return masking(main, i, counts).run();
}

}  // namespace kiln::onnx_import
