#include "aot/kernels/traits.hpp"

#include <algorithm>
#include <array>

#include "ir/ops/all.hpp"

namespace kiln {
namespace {

struct operation_row {
  std::string_view name;
  kernel_role role;
  double cost;    // of one output element, if inlinable
  bool epilogue;  // for anchors: whether takes_epilogue() holds
  // How often an anchor reads each operand's elements; the last entry applies to all further operands.
  std::array<double, 3> reads;
};

// An operation without a row is inlinable if the IR says it is elementwise, else structure.
constexpr std::array rows{
    operation_row{"convert", kernel_role::inlinable, 1, false, {}},
    operation_row{"broadcast", kernel_role::inlinable, 0, false, {}},
    operation_row{"reshape", kernel_role::inlinable, 0, false, {}},
    operation_row{"transpose", kernel_role::inlinable, 1, false, {}},
    operation_row{"slice", kernel_role::inlinable, 0, false, {}},
    operation_row{"pad", kernel_role::inlinable, 2, false, {}},
    operation_row{"concat", kernel_role::inlinable, 2, false, {}},
    operation_row{"gather", kernel_role::inlinable, 2, false, {}},
    operation_row{"gather_elements", kernel_role::inlinable, 4, false, {}},
    operation_row{"gather_nd", kernel_role::inlinable, 4, false, {}},
    operation_row{"iota", kernel_role::inlinable, 1, false, {}},
    operation_row{"resize", kernel_role::inlinable, 12, false, {}},
    operation_row{"dot", kernel_role::anchor, 0, true, {0, 0, 0}},
    operation_row{"convolution", kernel_role::anchor, 0, true, {0, 0, 0}},
    operation_row{"transposed_convolution", kernel_role::anchor, 0, true, {0, 0, 0}},
    operation_row{"attention", kernel_role::anchor, 0, true, {1, 1, 0}},
    operation_row{"pooling", kernel_role::anchor, 0, true, {0, 0, 0}},
    operation_row{"reduce", kernel_role::anchor, 0, true, {1, 1, 1}},
    operation_row{"arg_reduce", kernel_role::anchor, 0, true, {1, 1, 1}},
    operation_row{"softmax", kernel_role::anchor, 0, true, {3, 3, 3}},
    operation_row{"normalize", kernel_role::anchor, 0, true, {3, 3, 3}},
    operation_row{"cumulative_sum", kernel_role::anchor, 0, true, {1, 1, 1}},
    operation_row{"top_k", kernel_role::anchor, 0, false, {0, 0, 0}},
    operation_row{"scatter_elements", kernel_role::anchor, 0, false, {1, 1, 1}},
    operation_row{"scatter_nd", kernel_role::anchor, 0, false, {1, 1, 1}},
    operation_row{"recurrent", kernel_role::anchor, 0, false, {0, 0, 0}},
};

const operation_row* row_of(const operation& op) {
  for (const operation_row& r : rows)
    if (r.name == op.name()) return &r;
  return nullptr;
}

double function_cost(scalar_function f) {
  using enum scalar_function;
  switch (f) {
    case exp:
    case log:
    case erf:
    case tanh:
    case sigmoid:
    case pow:
    case sin:
    case cos:
    case tan:
    case asin:
    case acos:
    case atan:
    case sinh:
    case cosh:
    case asinh:
    case acosh:
    case atanh:
    case mod:
    case fmod: return 16;
    case div:
    case sqrt:
    case rsqrt:
    case reciprocal: return 4;
    default: return 1;
  }
}

}  // namespace

kernel_role role_of(const operation& op) {
  if (op.is<elementwise>()) return kernel_role::inlinable;
  const operation_row* r = row_of(op);
  return r ? r->role : kernel_role::structure;
}

bool keeps_indices(const operation& op) { return op.is<elementwise>() || op.is<convert>(); }

bool takes_epilogue(const operation& op) {
  const operation_row* r = row_of(op);
  return r && r->epilogue;
}

double element_cost(const operation& op) {
  if (const auto* e = op.get_if<elementwise>()) return function_cost(e->function);
  if (const auto* r = op.get_if<resize>(); r && r->mode == resize_mode::nearest) return 2;
  const operation_row* r = row_of(op);
  return r ? r->cost : 0;
}

double operand_reads(const operation& anchor, std::size_t index) {
  const operation_row* r = row_of(anchor);
  return r ? r->reads[std::min(index, r->reads.size() - 1)] : 0;
}

bool is_contraction(const operation& op) {
  return op.is<dot>() || op.is<convolution>() || op.is<transposed_convolution>() || op.is<attention>();
}

bool is_irregular(const operation& op) {
  if (const auto* t = op.get_if<transpose>())
    return !t->permutation.empty() && t->permutation.back() + 1 != static_cast<std::int64_t>(t->permutation.size());
  return op.is<concat>() || op.is<pad>() || op.is<gather>() || op.is<gather_elements>() || op.is<gather_nd>() ||
         op.is<resize>();
}

double estimated_elements(const shape& type) {
  constexpr std::int64_t symbol_value = 8;
  double product = 1;
  for (const dim& d : type.dims) {
    dim known = d;
    if (!d.is_static()) {
      dim_bindings bindings;
      for (const std::string& symbol : d.symbols()) bindings[symbol] = symbol_value;
      known = d.substitute(bindings);
    }
    product *= static_cast<double>(known.value());
  }
  return product;
}

}  // namespace kiln
