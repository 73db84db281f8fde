// recurrent (RNN, GRU, LSTM): a work item computes all time steps of one batch entry. The product h · Rᵀ reads R
// transposed, so that vectors run along the gates; a prepare stage transposes it. State and gates are f32 in scratch.
// Time steps and batch may be open.
#include <array>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/reduction_space.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/contraction/open_panels.hpp"
#include "mlir_bridge/kinds/recurrent/generators.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

struct recurrent_stage {
  kernel_emitter& e;
  code_builder& code;
  const recurrent& op;
  dim steps, batch;
  std::int64_t hidden, gates;  // gates: G * H
  element_type type, state_type;
  buffer inputs_gates, transposed, bias, initial_hidden, initial_cell;
  buffer hidden_state, cell_state, sums, gated;  // [B, H], [B, H], [B, G*H], [B, H]
  // Y, final h and final c, if requested.
  std::array<std::optional<buffer>, 3> results;

  Value one_of(scalar_function f, Value x) const {
    std::array<Value, 1> operands{x};
    return apply(code, f, state_type, operands);
  }
  Value times(Value a, Value b) const { return code.make<arith::MulFOp>(a, b); }
  Value plus(Value a, Value b) const { return code.make<arith::AddFOp>(a, b); }

  // sums[b, from..to) = state · transposed[:, from..to) + bias.
  void product(Value b, const buffer& state, std::int64_t from, std::int64_t to) {
    std::int64_t native = e.lanes_for(state_type, to - from), abreast = vectors_abreast(to - from, native),
                 width = native * abreast;
    Value weights = e.pointer(transposed), vector = e.pointer(state), out = e.pointer(sums), biases = e.pointer(bias);
    Value state_base = code.mul(b, hidden), out_base = code.mul(b, gates);
    code.loop(from, to, width, [&](Value column) {
      Value first = (to - from) % width ? code.min(column, to - width) : column;
      values start;
      for (std::int64_t v = 0; v < abreast; ++v)
        start.push_back(code.load(biases, code.add(first, v * native), type, native));
      values total = code.loop(0, hidden, 1, start, [&](Value k, std::span<const Value> s) {
        Value h = code.splat(code.load(vector, code.add(state_base, k), state_type, 1), native);
        Value row = code.add(code.mul(k, gates), first);
        values next;
        for (std::int64_t v = 0; v < abreast; ++v)
          next.push_back(
              code.fma(h, code.load(weights, code.add(row, v * native), type, native), s[static_cast<std::size_t>(v)]));
        return next;
      });
      for (std::int64_t v = 0; v < abreast; ++v)
        code.store(out, code.add(out_base, code.add(first, v * native)), state_type,
                   total[static_cast<std::size_t>(v)]);
    });
  }

  // Loops over the hidden axis in vectors. The remainder is computed element by element, because the state is updated
  // in place.
  void along_hidden(const std::function<void(Value, std::int64_t)>& body) {
    std::int64_t lanes = e.lanes_for(state_type, hidden), whole = hidden / lanes * lanes;
    code.loop(0, whole, lanes, [&](Value i) { body(i, lanes); });
    code.loop(whole, hidden, 1, [&](Value i) { body(i, 1); });
  }

  Value gate_input(Value b, Value t, std::int64_t gate, Value i, std::int64_t lanes) {
    Value row = code.add(e.mul(t, batch), b);
    return code.load(e.pointer(inputs_gates), code.add(code.mul(row, gates), code.add(i, gate * hidden)), type, lanes);
  }
  Value sum(Value b, std::int64_t gate, Value i, std::int64_t lanes) {
    return code.load(e.pointer(sums), code.add(code.mul(b, gates), code.add(i, gate * hidden)), state_type, lanes);
  }
  Value gate(Value b, Value t, std::int64_t g, Value i, std::int64_t lanes) {
    return plus(gate_input(b, t, g, i, lanes), sum(b, g, i, lanes));
  }
  Value state_offset(Value b, Value i) { return code.add(code.mul(b, hidden), i); }

  void store_hidden(Value b, Value t, Value i, Value h) {
    code.store(e.pointer(hidden_state), state_offset(b, i), state_type, h);
    if (results[0])
      code.store(e.pointer(*results[0]), code.add(code.mul(code.add(e.mul(t, batch), b), hidden), i), type, h);
  }

  void step(Value b, Value t) {
    Value h_pointer = e.pointer(hidden_state);
    using enum scalar_function;
    switch (op.cell) {
      case recurrent_cell::rnn:
        product(b, hidden_state, 0, gates);
        along_hidden([&](Value i, std::int64_t n) { store_hidden(b, t, i, one_of(tanh, gate(b, t, 0, i, n))); });
        return;
      case recurrent_cell::lstm:
        product(b, hidden_state, 0, gates);
        along_hidden([&](Value i, std::int64_t n) {
          Value c_pointer = e.pointer(cell_state), at = state_offset(b, i);
          Value input = one_of(sigmoid, gate(b, t, 0, i, n)), output = one_of(sigmoid, gate(b, t, 1, i, n)),
                forget = one_of(sigmoid, gate(b, t, 2, i, n));
          Value c = plus(times(forget, code.load(c_pointer, at, state_type, n)),
                         times(input, one_of(tanh, gate(b, t, 3, i, n))));
          code.store(c_pointer, at, state_type, c);
          store_hidden(b, t, i, times(output, one_of(tanh, c)));
        });
        return;
      case recurrent_cell::gru: break;
    }
    bool linear = op.linear_before_reset;
    product(b, hidden_state, 0, linear ? gates : 2 * hidden);
    if (!linear) {
      along_hidden([&](Value i, std::int64_t n) {
        Value reset = one_of(sigmoid, gate(b, t, 1, i, n));
        code.store(e.pointer(gated), state_offset(b, i), state_type,
                   times(reset, code.load(h_pointer, state_offset(b, i), state_type, n)));
      });
      product(b, gated, 2 * hidden, gates);
    }
    along_hidden([&](Value i, std::int64_t n) {
      Value update = one_of(sigmoid, gate(b, t, 0, i, n)), candidate = sum(b, 2, i, n);
      if (linear) candidate = times(one_of(sigmoid, gate(b, t, 1, i, n)), candidate);
      candidate = one_of(tanh, plus(gate_input(b, t, 2, i, n), candidate));
      Value old = code.load(h_pointer, state_offset(b, i), state_type, n);
      // (1 - update) * candidate + update * old
      store_hidden(b, t, i, plus(candidate, times(update, code.make<arith::SubFOp>(old, candidate))));
    });
  }

  void copy(Value b, const buffer& from, const buffer& to) {
    along_hidden([&](Value i, std::int64_t n) {
      Value at = state_offset(b, i);
      Value v = code.load(e.pointer(from), at, from.type, n);
      code.store(e.pointer(to), at, to.type, v);
    });
  }
};

}  // namespace

void emit_recurrent(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<recurrent>();
  auto& code = e.code;
  const auto& inputs = e.anchor()->inputs();
  const std::vector<dim>& sizes = kernel_emitter::sizes(e.anchor_result());
  element_type type = inputs[0].type().type, state_type = compute_type(type);
  bool lstm = op.cell == recurrent_cell::lstm;
  const dim steps = sizes[0], batch = sizes[1];
  const std::int64_t hidden = sizes[2].value(), gates = kernel_emitter::dims(inputs[1])[0];
  buffer weights = e.materialize(inputs[1]);
  bool constant = e.only_parameters(inputs[1]);
  buffer transposed = e.add_scratch(type, {hidden, gates}, constant);
  std::int64_t lanes = e.lanes_for(type, gates);
  e.parallel(
      "transpose_weights", {hidden}, gates * 2,
      [&](std::span<const Value> at) {
        Value from = e.pointer(weights), to = e.pointer(transposed);
        code.loop(0, gates, lanes, [&](Value j) {
          Value first = gates % lanes ? code.min(j, gates - lanes) : j;
          code.store(to, code.add(code.mul(at[0], gates), first), type,
                     code.load_strided(from, code.add(code.mul(first, hidden), at[0]), hidden, type, lanes));
        });
      },
      constant);

  recurrent_stage s{e,
                    code,
                    op,
                    steps,
                    batch,
                    hidden,
                    gates,
                    type,
                    state_type,
                    e.materialize(inputs[0]),
                    transposed,
                    e.materialize(inputs[2]),
                    e.materialize(inputs[3]),
                    {},
                    {},
                    {},
                    {},
                    {},
                    {}};
  if (lstm) s.initial_cell = e.materialize(inputs[4]);
  s.hidden_state = e.add_open_scratch(state_type, {batch, hidden});
  s.sums = e.add_open_scratch(state_type, {batch, gates});
  if (lstm) s.cell_state = e.add_open_scratch(state_type, {batch, hidden});
  if (op.cell == recurrent_cell::gru && !op.linear_before_reset)
    s.gated = e.add_open_scratch(state_type, {batch, hidden});
  for (std::uint32_t r = 0; r < (lstm ? 3u : 2u); ++r)
    for (std::size_t i = 0; i < e.outputs().size(); ++i)
      if (e.outputs()[i] == e.anchor_result(r)) s.results[r] = e.output(i);

  e.parallel_open("recurrent", {batch}, usual_size(steps) * gates * hidden, [&](std::span<const Value> at) {
    Value b = at[0];
    s.copy(b, s.initial_hidden, s.hidden_state);
    if (lstm) s.copy(b, s.initial_cell, s.cell_state);
    code.loop(code.constant(0), e.size(steps), 1,
              [&](Value i) { s.step(b, op.reverse ? code.sub(e.size(steps - 1), i) : i); });
    if (s.results[1]) s.copy(b, s.hidden_state, *s.results[1]);
    if (lstm && s.results[2]) s.copy(b, s.cell_state, *s.results[2]);
  });
}

}  // namespace kiln::cpu
