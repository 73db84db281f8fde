// normalize: the mean, then the variance of the differences to it (in one pass it would lose digits if the mean is
// large), then the scaled differences. A row that fits into registers is read once.
#include "ir/normalized_window.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/gpu/row_team.hpp"
#include "mlir_bridge/kinds/convolution/gpu/depthwise.hpp"
#include "mlir_bridge/kinds/normalize/generators.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

struct normalize_emitter {
  kernel_emitter& e;
  code_builder& code;
  row_team team;
  value input;
  element_type type;
  const normalize& op;
  values kept = {};

  Value plus(Value a, Value b) const { return code.make<arith::AddFOp>(a, b); }
  Value times(Value a, Value b) const { return code.make<arith::MulFOp>(a, b); }
  Value sum(Value v) {
    return team.total(v, [&](Value a, Value b) { return plus(a, b); });
  }
  Value share(Value total) const {
    if (team.space.count.is_static())
      return times(total, code.number(total.getType(), 1.0 / static_cast<double>(team.space.count.value())));
    return code.make<arith::DivFOp>(total, code.splat(team.count_as(type), code_builder::lanes_of(total)));
  }

  // Returns the element at a place, from registers or from memory, or 0 if another thread owns it.
  Value element(const row_team::place& at) const {
    if (at.piece >= 0 && static_cast<std::size_t>(at.piece) < kept.size())
      return kept[static_cast<std::size_t>(at.piece)];
    evaluator ev(e);
    return team.masked(at, ev.at(input, at.where, team.lanes()), code.number(code.type(type, team.lanes()), 0));
  }

  void emit() {
    Value zero = code.number(code.type(type, team.lanes()), 0), mean;
    if (team.in_registers()) {
      values read;
      team.each([&](const row_team::place& at) { read.push_back(element(at)); });
      kept = std::move(read);
    }
    if (op.centered) {
      Value total = team.walk({zero}, [&](const row_team::place& at, std::span<const Value> s) {
        return values{plus(s[0], element(at))};
      })[0];
      mean = team.spread(share(sum(total)));
      if (!kept.empty())
        team.each([&](const row_team::place& at) {
          Value& x = kept[static_cast<std::size_t>(at.piece)];
          x = team.masked(at, code.make<arith::SubFOp>(x, mean), zero);
        });
    }
    auto centered = [&](const row_team::place& at) {
      Value x = element(at);
      return op.centered && kept.empty() ? team.masked(at, code.make<arith::SubFOp>(x, mean), zero) : x;
    };
    Value squares = team.walk({zero}, [&](const row_team::place& at, std::span<const Value> s) {
      Value d = centered(at);
      return values{code.fma(d, d, s[0])};
    })[0];
    Value variance = share(sum(squares));
    variance = plus(variance, code.number(variance.getType(), op.epsilon));
    Value scale = team.spread(code.make<arith::DivFOp>(code.number(variance.getType(), 1),
                                                       code.make<mlir::math::SqrtOp>(variance).getResult()));
    team.each([&](const row_team::place& at) {
      Value result = times(centered(at), scale);
      team.when_owner(at, [&] {
        evaluator ev(e);
        ev.bind(e.anchor_result(), result);
        ev.store_outputs(at.where, team.lanes());
      });
    });
  }
};

// The few rows of a step of a language model: the product that follows reads its weights meanwhile.
bool leaves_time(kernel_emitter& e, const normalize& op, const row_team& team) {
  constexpr std::int64_t most_groups = 64, least_elements = 1024;
  const launch& l = e.current();
  return !op.centered && !l.open_grid && l.grid * l.grid_y <= most_groups && team.inner() && team.in_registers() &&
         team.space.count.value() >= least_elements;
}

}  // namespace

std::vector<candidate> normalize_space(kernel_emitter& e) {
  if (const instruction* window = find_normalized_window(*e.anchor()))
    return depthwise_space(e, *window, /*whole_pixels=*/true);
  return row_team_space(e, e.anchor()->inputs()[0], e.anchor()->op().get_if<normalize>()->axes, /*passes=*/3);
}

void emit_normalize(kernel_emitter& e) {
  if (emit_normalized_depthwise(e)) return;
  const auto& op = *e.anchor()->op().get_if<normalize>();
  value input = e.anchor()->inputs()[0];
  if (input.type().elements() == 0) return;
  if (!row_team(e, input, op.axes).in_registers()) e.materialize(input);
  normalize_emitter emitter{e, e.code, row_team(e, input, op.axes), input, compute_type(input.type().type), op};
  emitter.team.open("normalize");
  if (leaves_time(e, op, emitter.team)) {
    emitter.team.group().admit_successors();
    emitter.team.group().await_predecessors();
  }
  emitter.emit();
  emitter.team.close();
}

}  // namespace kiln::gpu
