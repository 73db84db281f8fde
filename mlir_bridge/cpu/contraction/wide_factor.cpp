#include "mlir_bridge/cpu/contraction/wide_factor.hpp"

#include "mlir_bridge/cpu/contraction/tile.hpp"

namespace kiln::cpu {

buffer materialize_wide(kernel_emitter& e, value v) {
  constexpr std::int64_t elements_at_once = 1024;
  const buffer narrow = e.materialize(v);
  if (!is_float(narrow.type) || accumulation_type(narrow.type) == narrow.type) return narrow;
  code_builder& code = e.code;
  const element_type type = accumulation_type(narrow.type);
  const dim total = v.type().elements();
  const bool prepare = total.is_static() && e.only_parameters(v);
  const buffer wide = e.add_open_scratch(type, narrow.sizes, prepare);
  const std::int64_t lanes = e.lanes_for(type, elements_at_once);
  e.parallel_open(
      "widen", {(total + elements_at_once - 1) / elements_at_once}, elements_at_once / lanes,
      [&](std::span<const Value> at) {
        const Value from = e.pointer(narrow), to = e.pointer(wide), first = code.mul(at[0], elements_at_once),
                    count = e.min(code.add(first, elements_at_once), total),
                    even = code.add(first, code.mul(code.div(code.sub(count, first), lanes), lanes));
        auto move = [&](Value i, std::int64_t some) {
          code.store(to, i, type, widen(code, code.load(from, i, narrow.type, some), narrow.type, type));
        };
        code.loop(first, even, lanes, [&](Value i) { move(i, lanes); });
        code.loop(even, count, 1, [&](Value i) { move(i, 1); });
      },
      prepare);
  return wide;
}

}  // namespace kiln::cpu
