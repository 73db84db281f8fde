#include "mlir_bridge/kinds/convolution/cpu/open_borders.hpp"

#include <functional>
#include <numeric>
#include <vector>

#include "mlir_bridge/cpu/contraction/open_panels.hpp"

namespace kiln::cpu {

buffer copy_with_borders(kernel_emitter& e, const channel_view& image, std::span<const dim> sizes,
                         std::span<const std::int64_t> begin, std::span<const std::int64_t> end,
                         std::int64_t elements_behind) {
  code_builder& code = e.code;
  const element_type type = image.memory.type;
  const std::int64_t channels = image.pitch(), lanes = e.lanes_for(type, 64);
  std::vector<dim> lines{image.memory.sizes[0]};
  for (std::size_t i = 0; i < sizes.size(); ++i) lines.push_back(sizes[i] + begin[i] + end[i]);
  std::vector<dim> all = lines;
  all.emplace_back(channels);
  const dim elements = std::accumulate(all.begin(), all.end(), dim(1), std::multiplies<>());
  buffer copy = e.add_open_scratch(type, {elements + elements_behind});
  copy.sizes = all;
  const dim of_line = lines.back() * channels, inside_line = sizes.back() * channels;
  lines.pop_back();
  e.parallel_open("borders", lines, usual_size(of_line), [&](std::span<const Value> at) {
    const Value zero = code.constant(0), to = offset_in(e, copy, at), target = e.pointer(copy);
    const auto clear = [&](Value first, Value last) {
      code.loop(first, last, 1,
                [&](Value i) { code.store(target, code.add(to, i), type, code.number(code.scalar_type(type), 0)); });
      return values{};
    };
    Value inside;
    values from(at.begin(), at.end());
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      from[1 + i] = code.sub(from[1 + i], begin[i]);
      // One unsigned comparison covers both ends.
      const Value here =
          code.make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult, from[1 + i], e.size(sizes[i])).getResult();
      inside = inside ? code.make<mlir::arith::AndIOp>(inside, here).getResult() : here;
    }
    const auto copy_line = [&] {
      const Value first = code.constant(begin.back() * channels), count = e.size(inside_line),
                  whole = code.mul(code.div(count, lanes), lanes), source = e.pointer(image.memory),
                  offset = offset_in(e, image.memory, from);
      const auto move = [&](Value i, std::int64_t width) {
        code.store(target, code.add(to, code.add(first, i)), type, code.load(source, code.add(offset, i), type, width));
      };
      clear(zero, first);
      code.loop(zero, whole, lanes, [&](Value i) { move(i, lanes); });
      code.loop(whole, count, 1, [&](Value i) { move(i, 1); });
      return clear(code.add(first, count), e.size(of_line));
    };
    if (inside) code.branch(inside, copy_line, [&] { return clear(zero, e.size(of_line)); });
    else copy_line();
  });
  return copy;
}

}  // namespace kiln::cpu
