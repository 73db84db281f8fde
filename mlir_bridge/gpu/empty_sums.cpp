#include "mlir_bridge/gpu/empty_sums.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "mlir_bridge/codegen/open_checks.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {
namespace {

// Returns true if, for some sizes, `count` is 0 and a tensor of these sizes has elements.
bool may_be_empty(const dim& count, const std::vector<dim>& sizes) {
  return !never_negative(count - 1) &&
         std::ranges::none_of(sizes, [&](const dim& d) { return never_negative(count - d); });
}

void store_everywhere(kernel_emitter& e, const std::function<Value()>& what) {
  constexpr std::int64_t threads = 256;
  code_builder& code = e.code;
  const std::vector<dim>& sizes = kernel_emitter::sizes(e.anchor_result());
  const dim items = std::accumulate(sizes.begin(), sizes.end(), dim(1), std::multiplies<>());
  workgroup group(e, "empty", (items + threads - 1) / threads, threads);
  const Value item = code.add(code.mul(group.block(), threads), group.thread());
  code.when(code.less(item, e.size(items)), [&] {
    position where;
    for (Value index : e.delinearize(item, sizes)) where.push_back({index, 0, {}});
    evaluator ev(e);
    ev.bind(e.anchor_result(), what());
    ev.store_outputs(where, 1);
  });
  group.close();
}

}  // namespace

void emit_with_empty_sums(kernel_emitter& e, const dim& count, const std::function<Value()>& nothing,
                          const std::function<void()>& emit) {
  if (!may_be_empty(count, kernel_emitter::sizes(e.anchor_result()))) return emit();
  const dim some = dim::min(count, 1), before = std::exchange(e.used, e.used * (1 - some));
  store_everywhere(e, nothing);
  e.used = before * some;
  emit();
  e.used = before;
}

void emit_with_empty_sums(kernel_emitter& e, const dim& count, const std::function<void()>& emit) {
  const element_type type = e.anchor_result().type().type;
  emit_with_empty_sums(e, count, [&] { return e.code.number(e.code.type(type, 1), 0); }, emit);
}

}  // namespace kiln::gpu
