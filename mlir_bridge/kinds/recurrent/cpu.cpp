// recurrent (RNN, GRU, LSTM): a work item computes all time steps of a few batch entries, the rows of its products. The
// product h · Rᵀ reads R in panels of gates, [panel][hidden][gates of the panel], one after another; a prepare stage
// packs them. State and gates are f32 in scratch. Time steps and batch may be open.
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

// Gates [from, to) in panels as wide as the sums that are computed at once. The last panel ends with the last gate, so
// two panels may have gates in common.
struct gate_panels {
  std::int64_t from = 0, to = 0, lanes = 1, abreast = 1;
  std::int64_t first = 0;  // element of the packed weights
  std::int64_t width() const { return lanes * abreast; }
  std::int64_t count() const { return (to - from + width() - 1) / width(); }
  Value first_gate(code_builder& code, Value panel) const {
    Value gate = code.add(code.mul(panel, width()), from);
    return (to - from) % width() ? code.min(gate, to - width()) : gate;
  }
};

// Rows times vectors of gates: as many sums as hide the latency of multiply-adds, which leaves registers for the
// weights.
constexpr std::int64_t sums_at_once = 8;

gate_panels panels_of(const kernel_emitter& e, element_type type, std::int64_t from, std::int64_t to,
                      std::int64_t first) {
  const std::int64_t lanes = e.lanes_for(type, to - from);
  const std::int64_t abreast =
      (to - from) % (sums_at_once * lanes) == 0 ? sums_at_once : vectors_abreast(to - from, lanes);
  return {from, to, lanes, abreast, first};
}

// Writes the weights [gates, hidden] of the panels into `packed`.
void pack(kernel_emitter& e, const buffer& weights, const buffer& packed, const gate_panels& panels,
          std::int64_t hidden, bool constant) {
  auto& code = e.code;
  const element_type type = packed.type;
  e.parallel(
      "pack_weights", {panels.count(), hidden}, panels.width() * 2,
      [&](std::span<const Value> at) {
        Value from = e.pointer(weights), to = e.pointer(packed), gate = panels.first_gate(code, at[0]);
        Value place = code.add(code.mul(code.add(code.mul(at[0], hidden), at[1]), panels.width()), panels.first);
        for (std::int64_t i = 0; i < panels.width(); i += panels.lanes)
          code.store(to, code.add(place, i), type,
                     code.load_strided(from, code.add(code.mul(code.add(gate, i), hidden), at[1]), hidden, type,
                                       panels.lanes));
      },
      constant);
}

struct recurrent_stage {
  kernel_emitter& e;
  code_builder& code;
  const recurrent& op;
  dim steps, batch;
  std::int64_t hidden, gates;  // gates: G * H
  element_type type, state_type;
  buffer inputs_gates, packed, bias, initial_hidden, initial_cell;
  buffer hidden_state, cell_state, sums, gated;  // [B, H], [B, H], [B, G*H], [B, H]
  // Y, final h and final c, if requested.
  std::array<std::optional<buffer>, 3> results;
  // All gates; a GRU that is not linear before its reset has the last third apart.
  std::vector<gate_panels> products;

  Value one_of(scalar_function f, Value x) const {
    std::array<Value, 1> operands{x};
    return apply(code, f, state_type, operands);
  }
  Value times(Value a, Value b) const { return code.make<arith::MulFOp>(a, b); }
  Value plus(Value a, Value b) const { return code.make<arith::AddFOp>(a, b); }

  // sums[b, gates of the panels] = state[b] · packed + bias, for each entry b.
  void product(const values& entries, const buffer& state, const gate_panels& panels) {
    const std::int64_t native = panels.lanes, width = panels.width();
    Value weights = e.pointer(packed), vector = e.pointer(state), out = e.pointer(sums), biases = e.pointer(bias);
    code.loop(0, panels.count(), 1, [&](Value panel) {
      Value first = panels.first_gate(code, panel), of_panel = code.add(code.mul(panel, hidden * width), panels.first);
      values start;
      for (std::size_t b = 0; b < entries.size(); ++b)
        for (std::int64_t v = 0; v < panels.abreast; ++v)
          start.push_back(code.load(biases, code.add(first, v * native), type, native));
      values total = code.loop(0, hidden, 1, start, [&](Value k, std::span<const Value> s) {
        Value row = code.add(of_panel, code.mul(k, width));
        values gates_at, next;
        for (std::int64_t v = 0; v < panels.abreast; ++v)
          gates_at.push_back(code.load(weights, code.add(row, v * native), type, native));
        for (Value b : entries) {
          Value h = code.splat(code.load(vector, state_offset(b, k), state_type, 1), native);
          for (Value w : gates_at) next.push_back(code.fma(h, w, s[next.size()]));
        }
        return next;
      });
      for (std::size_t i = 0; i < total.size(); ++i) {
        const auto b = i / static_cast<std::size_t>(panels.abreast);
        const auto v = static_cast<std::int64_t>(i) % panels.abreast;
        code.store(out, code.add(code.mul(entries[b], gates), code.add(first, v * native)), state_type, total[i]);
      }
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

  void for_each(const values& entries, const std::function<void(Value)>& body) {
    if (entries.size() == 1) return body(entries[0]);
    code.loop(entries.front(), code.add(entries.back(), 1), 1, body);
  }

  // `entries` are neighbours.
  void step(const values& entries, Value t) {
    product(entries, hidden_state, products[0]);
    if (products.size() > 1) {
      for_each(entries, [&](Value b) { reset(b, t); });
      product(entries, gated, products[1]);
    }
    for_each(entries, [&](Value b) { update(b, t); });
  }

  // gated[b] = reset * state[b], of a GRU that is not linear before its reset.
  void reset(Value b, Value t) {
    along_hidden([&](Value i, std::int64_t n) {
      Value reset = one_of(scalar_function::sigmoid, gate(b, t, 1, i, n));
      code.store(e.pointer(gated), state_offset(b, i), state_type,
                 times(reset, code.load(e.pointer(hidden_state), state_offset(b, i), state_type, n)));
    });
  }

  // The state of an entry from its sums.
  void update(Value b, Value t) {
    Value h_pointer = e.pointer(hidden_state);
    using enum scalar_function;
    switch (op.cell) {
      case recurrent_cell::rnn:
        along_hidden([&](Value i, std::int64_t n) { store_hidden(b, t, i, one_of(tanh, gate(b, t, 0, i, n))); });
        return;
      case recurrent_cell::lstm:
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
    along_hidden([&](Value i, std::int64_t n) {
      Value update = one_of(sigmoid, gate(b, t, 0, i, n)), candidate = sum(b, 2, i, n);
      if (op.linear_before_reset) candidate = times(one_of(sigmoid, gate(b, t, 1, i, n)), candidate);
      candidate = one_of(tanh, plus(gate_input(b, t, 2, i, n), candidate));
      Value old = code.load(h_pointer, state_offset(b, i), state_type, n);
      // (1 - update) * candidate + update * old
      store_hidden(b, t, i, plus(candidate, times(update, code.make<arith::SubFOp>(old, candidate))));
    });
  }

  // All time steps of a few entries, which are neighbours.
  void run(const values& entries) {
    const bool lstm = op.cell == recurrent_cell::lstm;
    for_each(entries, [&](Value b) {
      copy(b, initial_hidden, hidden_state);
      if (lstm) copy(b, initial_cell, cell_state);
    });
    code.loop(code.constant(0), e.size(steps), 1,
              [&](Value i) { step(entries, op.reverse ? code.sub(e.size(steps - 1), i) : i); });
    for_each(entries, [&](Value b) {
      if (results[1]) copy(b, hidden_state, *results[1]);
      if (lstm && results[2]) copy(b, cell_state, *results[2]);
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
  // Entries that share loads of the weights. Fewer are left for threads, so a small batch is not divided.
  const std::int64_t entries_of_batch = usual_size(batch), together = entries_of_batch >= 16  ? 4
                                                                      : entries_of_batch >= 4 ? 2
                                                                                              : 1;
  buffer weights = e.materialize(inputs[1]);
  bool constant = e.only_parameters(inputs[1]);
  const bool apart = op.cell == recurrent_cell::gru && !op.linear_before_reset;
  std::vector<gate_panels> products{panels_of(e, state_type, 0, apart ? 2 * hidden : gates, 0)};
  const auto end_of = [&](const gate_panels& panels) {
    return panels.first + panels.count() * panels.width() * hidden;
  };
  if (apart) products.push_back(panels_of(e, state_type, 2 * hidden, gates, end_of(products[0])));
  buffer packed = e.add_scratch(type, {end_of(products.back())}, constant);
  for (const gate_panels& panels : products) pack(e, weights, packed, panels, hidden, constant);

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
                    packed,
                    e.materialize(inputs[2]),
                    e.materialize(inputs[3]),
                    {},
                    {},
                    {},
                    {},
                    {},
                    {},
                    products};
  if (lstm) s.initial_cell = e.materialize(inputs[4]);
  s.hidden_state = e.add_open_scratch(state_type, {batch, hidden});
  s.sums = e.add_open_scratch(state_type, {batch, gates});
  if (lstm) s.cell_state = e.add_open_scratch(state_type, {batch, hidden});
  if (apart) s.gated = e.add_open_scratch(state_type, {batch, hidden});
  for (std::uint32_t r = 0; r < (lstm ? 3u : 2u); ++r)
    for (std::size_t i = 0; i < e.outputs().size(); ++i)
      if (e.outputs()[i] == e.anchor_result(r)) s.results[r] = e.output(i);

  e.parallel_open("recurrent", {(batch + together - 1) / together}, usual_size(steps) * gates * hidden * together,
                  [&](std::span<const Value> at) {
                    Value first = code.mul(at[0], together);
                    values entries;
                    for (std::int64_t b = 0; b < together; ++b) entries.push_back(code.add(first, b));
                    if (together == 1) return s.run(entries);
                    code.branch(
                        code.less(entries.back(), e.size(batch)),
                        [&] {
                          s.run(entries);
                          return values{};
                        },
                        [&] {
                          code.loop(first, e.size(batch), 1, [&](Value b) { s.run({b}); });
                          return values{};
                        });
                  });
}

}  // namespace kiln::cpu
