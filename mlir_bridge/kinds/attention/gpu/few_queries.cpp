// Attention of few queries on the vector unit. One workgroup for each head would leave most of the GPU idle, so the
// keys are divided into parts. A wave of the first stage attends to one part for one row; a wave of the second stage
// joins the parts of a row.
#include <limits>

#include "mlir_bridge/kinds/attention/gpu/wave_row.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t part_keys = 128, waves = 4;

class few_queries {
 public:
  few_queries(const attention_problem& problem, const dim& is_used)
      : p(problem),
        e(problem.emitter),
        code(e.code),
        used(is_used),
        parts((p.keys + part_keys - 1) / part_keys),
        width(p.n.value_depth + 2),
        found(e.add_open_scratch(element_type::f32, {p.batch, p.n.key_heads, p.all_rows * used, parts, width})) {}

  void emit_parts() {
    const dim units = p.all_rows * parts;
    attention_group place(e, p, (units + waves - 1) / waves, waves * e.target.gpu.wave, used);
    workgroup& group = place.group;
    const auto at = p.at(code, place.batch, place.key_head);
    const std::int64_t wave = e.target.gpu.wave;
    const Value weights = code.address(group.lds(waves * wave * 4), code.mul(group.wave(), wave), element_type::f32);
    const Value number = code.add(code.mul(place.tile, waves), group.wave()), unit = e.min(number, units - 1);
    const Value row = e.div(unit, parts), part = e.rem(unit, parts);
    const Value low = code.mul(part, part_keys), high = e.min(code.add(low, part_keys), p.keys);
    const wave_row result = attend(p, group, at, row, low, high, weights);
    const Value valid = code.less(number, e.size(units)), begin = place_of(place, row, part);
    const Value first_lane = code.equal(group.lane(), code.constant(0));
    code.when(code.make<arith::AndIOp>(valid, first_lane), [&] {
      code.store(e.pointer(found), begin, element_type::f32, result.top);
      code.store(e.pointer(found), code.add(begin, 1), element_type::f32, result.sum);
    });
    for (std::size_t i = 0; i < result.results.size(); ++i) {
      const Value depth = code.add(group.lane(), static_cast<std::int64_t>(i) * wave);
      const Value inside = code.less(depth, code.constant(p.n.value_depth));
      code.when(code.make<arith::AndIOp>(valid, inside), [&] {
        code.store(e.pointer(found), code.add(code.add(begin, 2), depth), element_type::f32, result.results[i]);
      });
    }
    group.close();
  }

  void emit_join() {
    attention_group place(e, p, (p.all_rows + waves - 1) / waves, waves * e.target.gpu.wave, used);
    workgroup& group = place.group;
    const auto at = p.at(code, place.batch, place.key_head);
    const Value number = code.add(code.mul(place.tile, waves), group.wave()), row = e.min(number, p.all_rows - 1);
    mlir::Type f32 = code.builder.getF32Type();
    const Value zero = code.number(f32, 0);
    values state{code.number(f32, -std::numeric_limits<double>::infinity()), zero};
    state.resize(static_cast<std::size_t>(2 + depths_of_lane(p)), zero);
    state = code.loop(code.constant(0), e.size(parts), 1, state, [&](Value part, std::span<const Value> so_far) {
      const Value begin = place_of(place, row, part);
      const auto read = [&](Value offset) {
        return code.load(e.pointer(found), code.add(begin, offset), element_type::f32, 1);
      };
      const Value top_of_part = read(code.constant(0));
      const Value top = code.make<arith::MaxNumFOp>(so_far[0], top_of_part), shift = shift_of(code, top);
      const Value before = power(code, so_far[0], shift), factor = power(code, top_of_part, shift);
      values next{top};
      for (std::size_t i = 1; i < so_far.size(); ++i) {
        const Value depth =
            i == 1 ? code.constant(1)
                   : code.add(code.min(code.add(group.lane(), static_cast<std::int64_t>(i - 2) * e.target.gpu.wave),
                                       p.n.value_depth - 1),
                              2);
        next.push_back(code.fma(read(depth), factor, code.make<arith::MulFOp>(so_far[i], before)));
      }
      return next;
    });
    store_row(p, group, at, row, code.less(number, e.size(p.all_rows)),
              {state[0], state[1], values(state.begin() + 2, state.end())});
    group.close();
  }

 private:
  // The offset of a part in the scratch memory.
  Value place_of(const attention_group& place, Value row, Value part) {
    Value offset = code.add(code.mul(place.batch, p.n.key_heads), place.key_head);
    offset = code.add(e.mul(offset, p.all_rows), row);
    return code.mul(code.add(e.mul(offset, parts), part), width);
  }

  const attention_problem& p;
  kernel_emitter& e;
  code_builder& code;
  dim used, parts;
  std::int64_t width;
  buffer found;
};

}  // namespace

void emit_few_queries(const attention_problem& problem, const dim& used) {
  few_queries stages(problem, used);
  stages.emit_parts();
  stages.emit_join();
}

}  // namespace kiln::gpu
