#include "aot/kernels/traits.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "ir/channel_range.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "ir/ops/cache_update.hpp"
#include "mlir_bridge/kinds/kind.hpp"

namespace kiln {
namespace {

struct inlinable_row {
  std::string_view name;
  double cost;  // of one output element
};

// Inlinable operations besides elementwise ones. An operation with a kind of kernel (mlir_bridge/kinds/kind.hpp) is an
// anchor; every other operation is structure.
constexpr std::array rows{
    inlinable_row{"convert", 1},   inlinable_row{"bit_cast", 1},
    inlinable_row{"broadcast", 0}, inlinable_row{"reshape", 0},
    inlinable_row{"transpose", 1}, inlinable_row{"slice", 0},
    inlinable_row{"pad", 2},       inlinable_row{"concat", 2},
    inlinable_row{"gather", 2},    inlinable_row{"gather_elements", 4},
    inlinable_row{"gather_nd", 4}, inlinable_row{"iota", 1},
    inlinable_row{"resize", 12},
};

const inlinable_row* row_of(const operation& op) {
  for (const inlinable_row& r : rows)
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
  if (row_of(op)) return kernel_role::inlinable;
  return find_kind(op.name()) ? kernel_role::anchor : kernel_role::structure;
}

bool takes_epilogue(const operation& op) {
  const kernel_kind* kind = find_kind(op.name());
  return kind && kind->epilogue;
}

double element_cost(const operation& op) {
  if (const auto* e = op.get_if<elementwise>()) return function_cost(e->function);
  if (const auto* r = op.get_if<resize>(); r && r->mode == resize_mode::nearest) return 2;
  const inlinable_row* r = row_of(op);
  return r ? r->cost : 0;
}

std::size_t operations_of(const instruction& at) {
  constexpr std::size_t operands_per_operation = 16;
  return 1 + (at.op().is<concat>() ? at.inputs().size() / operands_per_operation : 0);
}

double reads_of(const instruction& at, std::size_t k, double count) {
  const bool partial = at.op().is<concat>() || at.op().is<pad>();
  const double of_all = estimated_elements(at.outputs()[0]);
  if (partial && of_all > 0) return count * estimated_elements(at.inputs()[k].type()) / of_all;
  if (const auto* r = at.op().get_if<resize>(); r && r->mode != resize_mode::nearest)
    return count * (r->mode == resize_mode::linear ? 4 : 16);
  return count;
}

double operand_reads(const operation& anchor, std::size_t index) {
  const kernel_kind* kind = find_kind(anchor.name());
  return kind ? kind->operand_reads[std::min(index, kind->operand_reads.size() - 1)] : 0;
}

bool prefers_memory(const instruction& anchor, std::size_t index) {
  const auto* a = anchor.op().get_if<attention>();
  if (!a || index > 1) return false;
  value operand = anchor.inputs()[index];
  while (operand.producer->op().is<reshape>()) operand = operand.producer->inputs()[0];
  if (!keeps_indices(operand.producer->op())) return false;
  // The kernel that computes the wider type writes the narrower one instead.
  if (operand.producer->op().is<convert>()) {
    const value wide = operand.producer->inputs()[0];
    const operation& writer = wide.producer->op();
    if ((keeps_indices(writer) || (!has_few_queries(anchor) && role_of(writer) == kernel_role::inlinable)) &&
        wide.producer->users().size() == 1 && storage_bits(operand.type().type) < storage_bits(wide.type().type))
      return true;
  }
  constexpr std::int64_t many_queries = 64, many_keys = 128;
  const auto at_least = [](const value& v, head_layout layout, std::int64_t least) {
    const dim& positions = v.type().dims[head_axes(layout, v.type().rank()).position];
    return positions.is_static() && positions.value() >= least;
  };
  return at_least(anchor.inputs()[0], a->query_layout, many_queries) &&
         at_least(anchor.inputs()[1], a->key_layout, many_keys);
}

bool has_few_queries(const instruction& anchor) {
  const auto* a = anchor.op().get_if<attention>();
  if (!a) return false;
  constexpr std::int64_t few = 4;
  const shape& query = anchor.inputs()[0].type();
  const dim& positions = query.dims[head_axes(a->query_layout, query.rank()).position];
  return positions.is_static() && positions.value() <= few;
}

bool reads_views(const operation& anchor, std::size_t index, const operation& whole) {
  if (!anchor.is<attention>()) return false;
  // Keys of a cache are read where they are. Other keys are worth a dense copy.
  return index == 2 || (index == 1 && whole.is<cache_update>());
}

namespace {

// 16-bit and 8-bit convolutions with a window of one pixel are plain products. The matrix units of some GPUs take their
// operands from dense rows only.
bool is_narrow_product(const instruction& anchor) {
  const auto* c = anchor.op().get_if<convolution>();
  if (!c || storage_bits(anchor.inputs()[0].type().type) > 16) return false;
  const std::vector<dim>& filter = anchor.inputs()[1].type().dims;
  return std::ranges::all_of(filter.begin(), filter.end() - 2, [](const dim& d) { return d == dim(1); });
}

}  // namespace

bool reads_channels(const instruction& anchor, std::size_t index) {
  constexpr std::int64_t access_bytes = 16, transaction_bytes = 32;
  if (index != 0 ||
      !(anchor.op().is<convolution>() || anchor.op().is<transposed_convolution>() || anchor.op().is<pooling>()))
    return false;
  const value image = anchor.inputs()[0];
  const auto first = first_of_channels(*image.producer);
  if (!first || is_narrow_product(anchor)) return false;
  const dim &part = image.type().dims.back(), &whole = image.producer->inputs()[0].type().dims.back();
  if (!part.is_static() || !whole.is_static()) return false;
  const std::int64_t bits = storage_bits(image.type().type);
  auto alignment = [&](std::int64_t elements) { return std::gcd(elements * bits, access_bytes * 8); };
  return part.value() * bits >= transaction_bytes * 8 &&
         alignment(std::gcd(*first, whole.value())) >= alignment(part.value());
}

bool is_contraction(const operation& op) {
  const kernel_kind* kind = find_kind(op.name());
  return kind && kind->contraction;
}

bool is_irregular(const operation& op) {
  if (const auto* t = op.get_if<transpose>())
    return !t->permutation.empty() && t->permutation.back() + 1 != static_cast<std::int64_t>(t->permutation.size());
  return op.is<concat>() || op.is<pad>() || op.is<gather>() || op.is<gather_elements>() || op.is<gather_nd>() ||
         op.is<resize>();
}

bool reads_one_row(const instruction& at) {
  if (!at.op().is<gather>()) return false;
  const shape& indices = at.inputs()[1].type();
  return indices.is_static() && indices.element_count() == 1;
}

namespace {

// Takes all symbols as 8, or as more if a size by which another is divided would be 0.
double estimated_size(const dim& d) {
  if (d.is_static()) return static_cast<double>(d.value());
  for (std::int64_t symbol_value : {8, 512, 32768}) {
    dim_bindings bindings;
    for (const std::string& symbol : d.symbols()) bindings[symbol] = symbol_value;
    try {
      return static_cast<double>(d.substitute(bindings).value());
    } catch (const error&) {
      continue;
    }
  }
  return 1;
}

}  // namespace

double estimated_elements(const shape& type) {
  double product = 1;
  for (const dim& d : type.dims) product *= estimated_size(d);
  return product;
}

}  // namespace kiln
