#include "mlir_bridge/cpu/open_span.hpp"

#include <algorithm>

#include "mlir_bridge/codegen/open_sizes.hpp"

namespace kiln::cpu {

void open_span::walk(const std::function<void(const span_part&)>& visit) const {
  auto& code = e_.code;
  if (lanes_ == 1) return code.loop(low_, high_, 1, [&](Value i) { visit({i, 1, 1}); });
  const Value length = code.sub(high_, low_);
  const Value whole = divides_ ? high_ : code.add(low_, code.mul(code.div(length, lanes_), lanes_));
  code.loop(low_, whole, lanes_, [&](Value i) { visit({i, lanes_, std::min(lanes_, multiple_)}); });
  if (divides_) return;
  code.when(code.less(whole, high_), [&] {
    code.branch(
        code.less(length, code.constant(lanes_)),
        [&] {
          code.loop(whole, high_, 1, [&](Value i) { visit({i, 1, 1}); });
          return codegen::values{};
        },
        [&] {
          visit({code.sub(high_, lanes_), lanes_, 1});
          return codegen::values{};
        });
  });
}

open_span span_of_block(kernel_emitter& e, const dim& size, Value low, std::int64_t block, element_type type) {
  const std::int64_t lanes = e.lanes_for(type, block);
  return {e, low, e.min(e.code.add(low, block), size), lanes, lanes, codegen::known_factor(size) % lanes == 0};
}

}  // namespace kiln::cpu
