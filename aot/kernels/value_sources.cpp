#include "aot/kernels/value_sources.hpp"

#include <algorithm>

#include "aot/kernels/traits.hpp"
#include "aot/passes/facts.hpp"
#include "aot/passes/reshape_groups.hpp"
#include "ir/ops/elementwise.hpp"
#include "ir/ops/movement.hpp"

namespace kiln {

bool is_quantization(const instruction& at) {
  const auto* c = at.op().get_if<convert>();
  return c && (c->type == element_type::i8 || c->type == element_type::u8) && is_float(at.inputs()[0]);
}

value quantized_source(const instruction& at) {
  const operation& op = at.op();
  if (at.outputs().size() != 1 || !is_float(at.outputs()[0].type)) return {};
  if (op.is<convert>()) {
    value v = at.inputs()[0];
    if (is_float(v)) return quantized_source(*v.producer);
    return v.type().type == element_type::i8 || v.type().type == element_type::u8 ? v : value{};
  }
  const auto* e = op.get_if<elementwise>();
  const bool affine = e && (e->function == scalar_function::add || e->function == scalar_function::sub ||
                            e->function == scalar_function::mul);
  return affine && is_constant_like(at.inputs()[1]) ? quantized_source(*at.inputs()[0].producer) : value{};
}

bool comes_of(value v, value source, int& operations) {
  if (v == source) return true;
  if (operations-- <= 0 || !keeps_indices(v.producer->op())) return false;
  return std::ranges::any_of(v.producer->inputs(), [&](value input) {
    return !is_constant_like(input) && comes_of(input, source, operations);
  });
}

bool reads_irregularly(const instruction& at) {
  if (is_irregular(at.op())) return true;
  return keeps_indices(at.op()) && std::ranges::any_of(at.inputs(), [](value input) {
           const instruction* from = input.producer;
           while (from->op().is<convert>() || from->op().is<reshape>()) from = from->inputs()[0].producer;
           if (is_irregular(from->op())) return true;
           return keeps_indices(from->op()) &&
                  std::ranges::any_of(from->inputs(), [](value v) { return is_irregular(v.producer->op()); });
         });
}

std::optional<value> viewed(value v) {
  while (v.producer->op().is<reshape>() && only_unit_dims_change(v.producer->inputs()[0].type().dims, v.type().dims))
    v = v.producer->inputs()[0];
  const auto* s = v.producer->op().get_if<slice>();
  if (!s || s->steps.back() != 1) return std::nullopt;
  const value whole = v.producer->inputs()[0];
  return role_of(whole.producer->op()) != kernel_role::structure ? std::optional(whole) : std::nullopt;
}

}  // namespace kiln
