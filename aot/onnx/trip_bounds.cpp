#include "aot/onnx/trip_bounds.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/ops/body_module.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

class bounding {
 public:
  bounding(scope& outer) : outer_(outer), main_(outer.build()) {}

  std::optional<value> most(value v) {
    const instruction& i = *v.producer;
    if (v.index != 0 || ++steps_ > most_steps) return std::nullopt;
    if (const literal* data = module::constant(v)) return most_of(main_.constant(*data));
    if (i.op().is<parameter>()) return most_of_outer(v);
    if (i.op().is<reshape>() || i.op().is<broadcast>() || i.op().is<transpose>() || i.op().is<slice>() ||
        i.op().is<gather>() || i.op().is<gather_elements>() || i.op().is<gather_nd>())
      return most(i.inputs()[0]);
    if (i.op().is<concat>()) return largest(i.inputs());
    const auto* e = i.op().get_if<elementwise>();
    if (!e && !i.op().is<convert>()) return std::nullopt;
    if (e && e->function == fn::where) return largest(std::span(i.inputs()).subspan(1));
    return e && !grows(i, e->function) ? std::nullopt : applied(i);
  }

 private:
  static constexpr int most_steps = 256;

  std::optional<value> most_of(value v) {
    if (v.type().elements() == dim(0)) return std::nullopt;
    std::vector<std::int64_t> axes(v.type().rank());
    std::iota(axes.begin(), axes.end(), 0);
    return axes.empty() ? v : main_.reduced(reduction_kind::max, v, axes, false);
  }

  std::optional<value> most_of_outer(value v) {
    const std::string& name = module::parameter_name(v);
    if (!name.starts_with(outer_prefix)) return std::nullopt;
    const value from = outer_.find(name.substr(outer_prefix.size()));
    if (!from || from.type().type != v.type().type || v.type().type == element_type::boolean) return std::nullopt;
    return most_of(from);
  }

  std::optional<value> largest(std::span<const value> inputs) {
    std::optional<value> result;
    for (value input : inputs) {
      const auto next = most(input);
      if (!next) return std::nullopt;
      result = result ? main_.binary(fn::max, *result, *next) : *next;
    }
    return result;
  }

  // Whether the function grows with each of its inputs, of which constants are not below 0 where it matters.
  static bool grows(const instruction& i, fn function) {
    switch (function) {
      case fn::add:
      case fn::min:
      case fn::max:
      case fn::ceil:
      case fn::floor:
      case fn::round:
      case fn::relu: return true;
      case fn::sub: return number_of(i.inputs()[1]) != nullptr;
      case fn::mul: return is_positive(i.inputs()[0]) || is_positive(i.inputs()[1]);
      case fn::div: return is_positive(i.inputs()[1]);
      default: return false;
    }
  }

  static const literal* number_of(value v) {
    const literal* number = module::constant(spread(v));
    return number && number->type().element_count() == 1 ? number : nullptr;
  }

  static bool is_positive(value v) {
    const literal* number = number_of(v);
    return number && number->at(0) > 0;
  }

  // What a broadcast spreads.
  static value spread(value v) {
    while (v.producer->op().is<broadcast>()) v = v.producer->inputs()[0];
    return v;
  }

  std::optional<value> applied(const instruction& i) {
    std::vector<value> inputs;
    for (value input : i.inputs()) {
      const auto next = most(input);
      if (!next) return std::nullopt;
      inputs.push_back(*next);
    }
    return main_.add(i.op(), inputs);
  }

  scope& outer_;
  builder& main_;
  int steps_ = 0;
};

}  // namespace

scope* scope_around_module(const node& n) {
  scope* outer = n.owner.around();
  while (outer && &outer->build() == &n.b) outer = outer->around();
  return outer;
}

std::optional<value> most_in_all_trips(const node& n, value v) {
  scope* outer = scope_around_module(n);
  if (!outer || &outer->build().target() != &n.owner.state().result.main()) return std::nullopt;
  return bounding(*outer).most(v);
}

}  // namespace kiln::onnx_import
