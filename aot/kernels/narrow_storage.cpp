#include "aot/kernels/narrow_storage.hpp"

#include <algorithm>

#include "aot/kernels/traits.hpp"
#include "aot/kernels/value_sources.hpp"
#include "ir/ops/elementwise.hpp"

namespace kiln {

bool readers_dequantize(const instruction& at, const instruction_numbers& number) {
  const value source = quantized_source(at);
  if (!source || module::constant(source)) return false;
  const instruction* last = &at;
  while (last->users().size() == 1 && quantized_source(*last->users()[0]) == source) last = last->users()[0];
  auto inlines = [](const instruction* user) { return role_of(user->op()) == kernel_role::inlinable; };
  if (last->users().empty() || !std::ranges::all_of(last->users(), inlines)) return false;
  return std::ranges::any_of(last->users(), [&](const instruction* user) {
    return !keeps_indices(user->op()) || std::ranges::any_of(user->inputs(), [&](value other) {
      const value younger = quantized_source(*other.producer);
      int operations = 32;
      return younger && number(*younger.producer) > number(*source.producer) && !comes_of(younger, source, operations);
    });
  });
}

bool readers_widen_rounded(const instruction& at, const instruction_numbers& number) {
  const auto bits_of = [](const shape& type) { return is_float(type.type) ? storage_bits(type.type) : 0; };
  if (!at.op().is<convert>() || at.users().empty()) return false;
  const value rounded = at.inputs()[0];
  const auto bits = bits_of(rounded.type());
  if (!rounded.producer->op().is<convert>() || bits == 0 || bits_of(at.outputs()[0]) <= bits ||
      bits_of(rounded.producer->inputs()[0].type()) <= bits)
    return false;
  return std::ranges::all_of(at.users(), [&](const instruction* user) {
    const auto& inputs = user->inputs();
    const auto place = std::ranges::find(inputs, &at, &value::producer) - inputs.begin();
    const value widened = inputs[static_cast<std::size_t>(place)];
    if (role_of(user->op()) == kernel_role::anchor)
      return operand_reads(user->op(), static_cast<std::size_t>(place)) > 0;
    return keeps_indices(user->op()) && std::ranges::any_of(inputs, [&](value other) {
             int operations = 32;
             return number(*other.producer) > number(*widened.producer) && !comes_of(other, widened, operations);
           });
  });
}

}  // namespace kiln
