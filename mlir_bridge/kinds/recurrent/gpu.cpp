// recurrent (RNN, GRU, LSTM): a workgroup computes all time steps of one batch entry. The state is in shared memory. In
// the product h · Rᵀ a thread owns columns. On NVIDIA GPUs the workgroup holds R for all steps (gpu_held_weights.hpp);
// otherwise it reads R transposed, so that neighbouring threads read neighbouring weights. A prepare stage transposes
// R. Time steps and batch may be open.
#include <algorithm>
#include <array>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"
#include "mlir_bridge/kinds/recurrent/generators.hpp"
#include "mlir_bridge/kinds/recurrent/gpu_held_weights.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

// Elements of the hidden axis per step of the product.
constexpr std::int64_t abreast = 4;

struct recurrent_stage {
  kernel_emitter& e;
  code_builder& code;
  const recurrent& op;
  workgroup& group;
  dim steps, batch;
  std::int64_t hidden, gates;  // gates: G * H
  element_type type, state_type;
  buffer inputs_gates, transposed, bias;
  Value b, hidden_state, cell_state, sums, gated;  // shared memory: [H], [H], [G*H], [H]
  // Y, final h and final c, if requested.
  std::array<std::optional<buffer>, 3> results;
  // With held weights, each thread has at most one unit, and reads what it needs of inputs and bias before the product.
  std::optional<held_weights> held = {};
  values words = {}, unit_inputs = {}, unit_bias = {};

  Value one_of(scalar_function f, Value x) const {
    std::array<Value, 1> operands{x};
    return apply(code, f, state_type, operands);
  }
  Value times(Value a, Value c) const { return code.make<arith::MulFOp>(a, c); }
  Value plus(Value a, Value c) const { return code.make<arith::AddFOp>(a, c); }
  Value local(Value region, Value i) const { return code.load(region, i, state_type, 1); }
  void keep(Value region, Value i, Value v) const { code.store(region, i, state_type, v); }

  // Distributes the elements of [low, high) over the threads, followed by a barrier.
  void share(std::int64_t low, std::int64_t high, const std::function<void(Value)>& body) const {
    if (held) {
      Value i = code.add(group.thread(), low);
      code.when(code.less(i, code.constant(high)), [&] { body(i); });
      return group.barrier();
    }
    code.loop(code.add(group.thread(), low), code.constant(high), group.threads(), body);
    group.barrier();
  }

  // sums[from..to) = state · transposed[:, from..to) + bias.
  void product(Value state, std::int64_t from, std::int64_t to) {
    if (held) return held->product(group, words, state, sums, from, to);
    share(from, to, [&](Value column) {
      Value weights = e.pointer(transposed);
      auto step = [&](Value k, Value total) {
        Value w = code.load(weights, code.add(code.mul(k, gates), column), type, 1);
        return code.fma(local(state, k), w, total);
      };
      Value zero = code.number(code.scalar_type(state_type), 0);
      values start(abreast, zero);
      start[0] = code.load(e.pointer(bias), column, type, 1);
      std::int64_t whole = hidden / abreast * abreast;
      values totals = code.loop(0, whole, abreast, start, [&](Value k, std::span<const Value> s) {
        values next;
        for (std::int64_t i = 0; i < abreast; ++i) next.push_back(step(code.add(k, i), s[static_cast<std::size_t>(i)]));
        return next;
      });
      for (std::int64_t k = whole; k < hidden; ++k) totals[0] = step(code.constant(k), totals[0]);
      keep(sums, column, plus(plus(totals[0], totals[1]), plus(totals[2], totals[3])));
    });
  }

  // Loads the inputs and the bias of this thread's unit, whose latency the product hides.
  void read_unit(Value t) {
    const std::int64_t count = gates / hidden;
    Value unit = group.thread();
    unit_inputs.clear(), unit_bias.clear();
    auto read = [&] {
      values found;
      for (std::int64_t g = 0; g < count; ++g) found.push_back(load_input(t, g, unit));
      for (std::int64_t g = 0; g < count; ++g)
        found.push_back(code.load(e.pointer(bias), code.add(unit, g * hidden), type, 1));
      return found;
    };
    const values none(static_cast<std::size_t>(2 * count), code.number(code.scalar_type(type), 0));
    values found = code.branch(code.less(unit, code.constant(hidden)), read, [&] { return none; });
    unit_inputs.assign(found.begin(), found.begin() + count);
    unit_bias.assign(found.begin() + count, found.end());
  }

  Value load_input(Value t, std::int64_t gate, Value i) const {
    Value row = code.add(e.mul(t, batch), b);
    return code.load(e.pointer(inputs_gates), code.add(code.mul(row, gates), code.add(i, gate * hidden)), type, 1);
  }
  Value gate_input(Value t, std::int64_t gate, Value i) const {
    return held ? unit_inputs[static_cast<std::size_t>(gate)] : load_input(t, gate, i);
  }
  Value sum(std::int64_t gate, Value i) {
    Value column = code.add(i, gate * hidden);
    if (held) return plus(held->sum(sums, column), unit_bias[static_cast<std::size_t>(gate)]);
    return local(sums, column);
  }
  Value gate(Value t, std::int64_t g, Value i) { return plus(gate_input(t, g, i), sum(g, i)); }

  void set_hidden(Value t, Value i, Value h) const {
    keep(hidden_state, i, h);
    if (results[0])
      code.store(e.pointer(*results[0]), code.add(code.mul(code.add(e.mul(t, batch), b), hidden), i), type, h);
  }

  void step(Value t) {
    if (held) read_unit(t);
    using enum scalar_function;
    switch (op.cell) {
      case recurrent_cell::rnn:
        product(hidden_state, 0, gates);
        share(0, hidden, [&](Value i) { set_hidden(t, i, one_of(tanh, gate(t, 0, i))); });
        return;
      case recurrent_cell::lstm:
        product(hidden_state, 0, gates);
        share(0, hidden, [&](Value i) {
          Value input = one_of(sigmoid, gate(t, 0, i)), output = one_of(sigmoid, gate(t, 1, i)),
                forget = one_of(sigmoid, gate(t, 2, i));
          Value c = plus(times(forget, local(cell_state, i)), times(input, one_of(tanh, gate(t, 3, i))));
          keep(cell_state, i, c);
          set_hidden(t, i, times(output, one_of(tanh, c)));
        });
        return;
      case recurrent_cell::gru: break;
    }
    bool linear = op.linear_before_reset;
    product(hidden_state, 0, linear ? gates : 2 * hidden);
    if (!linear) {
      share(0, hidden, [&](Value i) { keep(gated, i, times(one_of(sigmoid, gate(t, 1, i)), local(hidden_state, i))); });
      product(gated, 2 * hidden, gates);
    }
    share(0, hidden, [&](Value i) {
      Value update = one_of(sigmoid, gate(t, 0, i)), candidate = sum(2, i);
      if (linear) candidate = times(one_of(sigmoid, gate(t, 1, i)), candidate);
      candidate = one_of(tanh, plus(gate_input(t, 2, i), candidate));
      // (1 - update) * candidate + update * old
      set_hidden(t, i, plus(candidate, times(update, code.make<arith::SubFOp>(local(hidden_state, i), candidate))));
    });
  }

  Value row(Value i) const { return code.add(code.mul(b, hidden), i); }
  void read_state(const buffer& from, Value to) const {
    share(0, hidden, [&](Value i) { keep(to, i, code.load(e.pointer(from), row(i), from.type, 1)); });
  }
  void write_state(Value from, const buffer& to) const {
    share(0, hidden, [&](Value i) { code.store(e.pointer(to), row(i), to.type, local(from, i)); });
  }
};

// Returns R transposed, to [hidden, gates].
buffer transpose_weights(kernel_emitter& e, const buffer& weights, std::array<std::int64_t, 2> dims, bool constant) {
  code_builder& code = e.code;
  buffer transposed = e.add_scratch(weights.type, {dims[0], dims[1]}, constant);
  e.parallel(
      "transpose_weights", {dims[0], dims[1]}, 1,
      [&](std::span<const Value> at) {
        Value x = code.load(e.pointer(weights), code.add(code.mul(at[1], dims[0]), at[0]), weights.type, 1);
        code.store(e.pointer(transposed), code.add(code.mul(at[0], dims[1]), at[1]), weights.type, x);
      },
      constant);
  return transposed;
}

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
  if (batch == dim(0) || hidden == 0) return;
  buffer weights = e.materialize(inputs[1]), gate_inputs = e.materialize(inputs[0]), bias = e.materialize(inputs[2]),
         initial = e.materialize(inputs[3]), initial_cell;
  if (lstm) initial_cell = e.materialize(inputs[4]);
  bool constant = e.only_parameters(inputs[1]);
  const std::optional<held_plan> plan = plan_held_weights(e.target, hidden, gates, type);
  std::optional<held_weights> held;
  buffer transposed;
  if (plan) held.emplace(e, *plan, weights, constant);
  else transposed = transpose_weights(e, weights, {hidden, gates}, constant);

  const std::int64_t wave = e.target.gpu.wave;
  workgroup group(e, "recurrent", batch,
                  plan ? threads_of(*plan, wave)
                       : std::min<std::int64_t>(e.target.gpu.max_threads, (gates + wave - 1) / wave * wave));
  std::int64_t bytes = storage_bits(state_type) / 8;
  recurrent_stage s{e,
                    code,
                    op,
                    group,
                    steps,
                    batch,
                    hidden,
                    gates,
                    type,
                    state_type,
                    gate_inputs,
                    transposed,
                    bias,
                    group.block(),
                    group.lds(hidden * bytes),
                    {},
                    group.lds(gates * (plan ? plan->parts : 1) * bytes),
                    {},
                    {}};
  if (lstm) s.cell_state = group.lds(hidden * bytes);
  if (op.cell == recurrent_cell::gru && !op.linear_before_reset) s.gated = group.lds(hidden * bytes);
  for (std::uint32_t r = 0; r < (lstm ? 3u : 2u); ++r)
    for (std::size_t i = 0; i < e.outputs().size(); ++i)
      if (e.outputs()[i] == e.anchor_result(r)) s.results[r] = e.output(i);
  if (held) {
    s.held.emplace(*held);
    s.words = s.held->load(group);
  }
  s.read_state(initial, s.hidden_state);
  if (lstm) s.read_state(initial_cell, s.cell_state);
  auto step = [&](Value i) { s.step(op.reverse ? code.sub(e.size(steps - 1), i) : i); };
  if (s.held)
    code.loop(code.constant(0), e.size(steps), 1, s.words, [&](Value i, std::span<const Value> words) {
      s.words = s.held->opaque(words);
      step(i);
      return s.words;
    });
  else code.loop(code.constant(0), e.size(steps), 1, step);
  if (s.results[1]) s.write_state(s.hidden_state, *s.results[1]);
  if (lstm && s.results[2]) s.write_state(s.cell_state, *s.results[2]);
  group.close();
}

}  // namespace kiln::gpu
