#include "aot/onnx/dim_arithmetic.hpp"

#include <memory>

#include "aot/onnx/symbolic.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

value combined(fn f, value a, value b, const dim_emitter& emit) { return emit.add(elementwise{f}, {a, b}); }

// Repeating the steps in a kernel would round differently on some targets. The size of a tensor is exact.
value value_of_real(const dim& size, const dim_emitter& emit) {
  for (const std::string& symbol : size.symbols())
    if (symbol.starts_with(count_prefix))
      throw error(error_kind::unsupported,
                  "the size " + size.str() + " is computed in floats from a result's size that depends on data");
  return emit.add(reduce{reduction_kind::sum, {0}, true}, {emit.add(broadcast{{size}}, {emit.number(1)})});
}

value value_of_atom(const dim_atom& atom, const dim_emitter& emit) {
  if (atom.is == dim_atom::kind::symbol) return emit.symbol(atom.text);
  if (atom.is == dim_atom::kind::real) return value_of_real(dim::from(std::make_shared<const dim_atom>(atom)), emit);
  value result = value_of_dim(atom.operands.at(0), emit);
  if (atom.is == dim_atom::kind::quotient) {
    // Integer division truncates. Subtracting the remainder first makes the numerator a multiple of the divisor.
    value divisor = value_of_dim(atom.operands.at(1), emit);
    value multiple = combined(fn::sub, result, combined(fn::mod, result, divisor, emit), emit);
    return combined(fn::div, multiple, divisor, emit);
  }
  const fn pick = atom.is == dim_atom::kind::minimum ? fn::min : fn::max;
  for (std::size_t i = 1; i < atom.operands.size(); ++i)
    result = combined(pick, result, value_of_dim(atom.operands[i], emit), emit);
  return result;
}

}  // namespace

value value_of_dim(const dim& d, const dim_emitter& emit) {
  if (d.is_static()) return emit.number(d.value());
  value total;
  for (const auto& [atoms, coefficient] : d.terms()) {
    value product;
    for (const auto& atom : atoms) {
      value factor = value_of_atom(*atom, emit);
      product = product ? combined(fn::mul, product, factor, emit) : factor;
    }
    if (!product) product = emit.number(coefficient);
    else if (coefficient != 1) product = combined(fn::mul, product, emit.number(coefficient), emit);
    total = total ? combined(fn::add, total, product, emit) : product;
  }
  return total;
}

}  // namespace kiln::onnx_import
