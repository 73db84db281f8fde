// LSTM, GRU and RNN: one product for the inputs of all time steps, then one `recurrent` operation or a loop
// (recurrent_steps.hpp) per direction.
#include <algorithm>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/recurrent_steps.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

const std::vector<std::string>& default_activations(recurrent_cell cell) {
  static const std::vector<std::string> rnn{"tanh"}, gru{"sigmoid", "tanh"}, lstm{"sigmoid", "tanh", "tanh"};
  return cell == recurrent_cell::rnn ? rnn : cell == recurrent_cell::gru ? gru : lstm;
}

// Returns entry d of the leading axis, the direction axis of W, R, B and the initial states.
value direction_of(builder& b, value stacked, std::int64_t d) {
  auto dims = stacked.type().dims;
  return b.with_dims(b.slice_axis(stacked, 0, d, 1), {dims.begin() + 1, dims.end()});
}

value stack(builder& b, const std::vector<value>& values, std::int64_t axis) {
  std::vector<value> lifted;
  for (value v : values) {
    auto dims = v.type().dims;
    dims.insert(dims.begin() + axis, 1);
    lifted.push_back(b.with_dims(v, dims));
  }
  return lifted.size() == 1 ? lifted[0] : b.add(concat{axis}, lifted);
}

// Returns the lengths of the sequences, i64[B]; empty if every sequence is as long as X.
value varying_lengths(node& n, const dim& steps) {
  if (!n.has(4)) return {};
  auto known = n.b.known(n.in(4));
  if (known && std::ranges::all_of(*known, [&](const dim& length) { return length == steps; })) return {};
  return n.b.with_dims(n.b.to_type(n.in(4), element_type::i64), {n.type(4).elements()});
}

// Helps with a layer whose sequences have different lengths. Past the end of a sequence its states must not change and
// its results must be 0.
class sequence_lengths {
 public:
  // `lengths` is i64[B] or empty. If it is empty, every member function returns its argument.
  sequence_lengths(builder& b, value lengths, const dim& steps) : b_(b), lengths_(lengths) {
    if (!lengths) return;
    batch_ = lengths.type().dims.at(0);
    value row = b.with_dims(lengths, {1, batch_, 1});
    step_ = b.iota_like(element_type::i64, {steps, 1, 1}, 0);
    valid_ = b.binary(fn::less, step_, row);
    turned_ = b.where(valid_, b.binary(fn::sub, b.binary(fn::sub, row, 1.0), step_), step_);
  }
  explicit operator bool() const { return static_cast<bool>(lengths_); }

  // Reverses each sequence of [T, B, C] within its length.
  value reversed(value x) const { return b_.add(gather_elements{0}, {x, b_.broadcast_to(turned_, x.type().dims)}); }
  // Sets the gates of an LSTM past the end so that the cell keeps its value: input gate 0, forget gate 1. ONNX orders
  // gates i, o, f, c.
  value holding_cell(value products, const dim& hidden) const {
    if (!lengths_) return products;
    constexpr double closed = -1e30;
    value gate = b_.iota_like(element_type::i64, {1, 1, hidden * dim(4)}, 2);
    value block = b_.binary(fn::div, gate, b_.dims_tensor({hidden}, 0));
    auto is = [&](double which) { return b_.binary(fn::equal, block, which); };
    element_type type = products.type().type;
    value held = b_.where(is(0), b_.scalar(type, closed), b_.where(is(2), b_.scalar(type, -closed), products));
    return b_.where(valid_, products, held);
  }
  value masked(value y) const { return lengths_ ? b_.where(valid_, y, b_.scalar(y.type().type, 0)) : y; }
  // Returns the state [B, H] after the last step of each sequence.
  value last(value y, value initial) const {
    value row = b_.with_dims(lengths_, {1, batch_, 1}), at = b_.binary(fn::max, b_.binary(fn::sub, row, 1.0), 0.0);
    const dim hidden = y.type().dims.at(2);
    value state = b_.add(gather_elements{0}, {y, b_.broadcast_to(at, {1, batch_, hidden})});
    value empty = b_.with_dims(b_.binary(fn::equal, lengths_, 0.0), {batch_, 1});
    return b_.where(empty, initial, b_.with_dims(state, {batch_, hidden}));
  }

 private:
  builder& b_;
  value lengths_, step_, valid_, turned_;
  dim batch_ = 0;
};

// inputs: X [T, B, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], sequence_lens, h0 [D, B, H], c0 [D, B, H], P.
// layout=1 puts the batch first.
std::vector<value> layer(node& n, recurrent_cell cell, value weights, value recurrence) {
  builder& b = n.b;
  bool batch_first = n.integer("layout", 0) != 0;
  value x = n.in(0);
  if (x.type().rank() != 3 || weights.type().rank() != 3 || recurrence.type().rank() != 3)
    invalid("X, W and R need rank 3");
  if (batch_first) x = b.permuted(x, {1, 0, 2});
  dim steps = x.type().dims.at(0), batch = x.type().dims.at(1), features = x.type().dims.at(2);
  dim gates = weights.type().dims.at(1), hidden = recurrence.type().dims.at(2);
  std::int64_t per_cell = cell == recurrent_cell::lstm ? 4 : cell == recurrent_cell::gru ? 3 : 1;
  if (!(gates == hidden * dim(per_cell)))
    invalid("W " + weights.type().str() + " does not fit R " + recurrence.type().str());
  std::string direction = n.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    invalid("direction '" + direction + "' is unknown");
  std::int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (!(weights.type().dims.at(0) == dim(directions)) || !(recurrence.type().dims.at(0) == dim(directions)))
    invalid("W and R need " + std::to_string(directions) + " directions");
  const value varying = varying_lengths(n, steps);
  sequence_lengths lengths(b, varying, steps);
  const bool plain = !n.has(7) && !n.has_attribute("clip") && !n.integer("input_forget", 0);
  const bool is_lstm = cell == recurrent_cell::lstm;
  element_type type = x.type().type;
  bool reset_after = cell == recurrent_cell::gru && n.integer("linear_before_reset", 0) != 0;
  value flat = b.with_dims(x, {steps * batch, features});
  auto initial = [&](std::size_t i, std::int64_t d) {
    if (!n.has(i)) return b.broadcast_to(b.scalar(type, 0), {batch, hidden});
    return direction_of(b, batch_first ? b.permuted(n.in(i), {1, 0, 2}) : n.in(i), d);
  };
  // The products of all directions come first: then nothing stands between the directions' recurrences, which the host
  // runs side by side.
  std::vector<value> all_products, late_biases;
  for (std::int64_t d = 0; d < directions; ++d) {
    value products = b.add(dot{false, true, type}, {flat, direction_of(b, weights, d)});
    value late_bias = b.broadcast_to(b.scalar(type, 0), {gates});
    if (n.has(3)) {
      value bias = direction_of(b, n.in(3), d);
      if (bias.type().rank() != 1 || !(bias.type().dims.at(0) == gates * dim(2)))
        invalid("B " + n.type(3).str() + " does not fit W " + weights.type().str());
      if (!gates.is_static()) refuse("the number of gates is symbolic");
      value of_input = b.slice_axis(bias, 0, 0, gates), of_state = b.slice_axis(bias, 0, gates.value(), gates);
      if (reset_after)
        // The candidate's bias is added before the reset gate is applied, so it cannot be added in advance.
        late_bias = of_state;
      products = b.binary(fn::add, products, reset_after ? of_input : b.binary(fn::add, of_input, of_state));
    }
    all_products.push_back(b.with_dims(products, {steps, batch, gates}));
    late_biases.push_back(late_bias);
  }
  std::vector<value> outputs, final_h, final_c;
  for (std::int64_t d = 0; d < directions; ++d) {
    bool backwards = direction == "reverse" || d == 1;
    value products = all_products[static_cast<std::size_t>(d)], late_bias = late_biases[static_cast<std::size_t>(d)];
    value state = initial(5, d), cell_state = is_lstm ? initial(6, d) : value{};
    value state_weights = direction_of(b, recurrence, d);
    const auto activations = activations_of(n, default_activations(cell), static_cast<std::size_t>(d));
    if (!plain || !std::ranges::equal(activations, default_activations(cell), {}, &recurrent_activation::name)) {
      value peepholes = n.has(7) ? direction_of(b, n.in(7), d) : value{};
      auto made = stepped_direction(n, {{cell, backwards, reset_after},
                                        activations,
                                        n.real("clip", 0),
                                        n.integer("input_forget", 0) != 0,
                                        products,
                                        state_weights,
                                        late_bias,
                                        state,
                                        cell_state,
                                        peepholes,
                                        varying});
      outputs.push_back(made[0]);
      final_h.push_back(made[1]);
      if (is_lstm) final_c.push_back(made[2]);
      continue;
    }
    if (lengths && backwards) products = lengths.reversed(products);
    if (is_lstm) products = lengths.holding_cell(products, hidden);
    std::vector<value> arguments{products, state_weights, late_bias, state};
    if (is_lstm) arguments.push_back(cell_state);
    value y = b.add(recurrent{cell, backwards && !lengths, reset_after}, arguments);
    final_h.push_back(lengths ? lengths.last(y, state) : builder::output(y, 1));
    value ordered = lengths && backwards ? lengths.reversed(y) : y;
    outputs.push_back(lengths.masked(ordered));
    if (is_lstm) final_c.push_back(builder::output(y, 2));
  }
  // Y [T, D, B, H] and Y_h, Y_c [D, B, H]. With the batch first, Y is [B, T, D, H] and the states are [B, D, H].
  value y = stack(b, outputs, 1), h = stack(b, final_h, 0);
  if (batch_first) {
    y = b.permuted(y, {2, 0, 1, 3});
    h = b.permuted(h, {1, 0, 2});
  }
  std::vector<value> results{y, h};
  if (is_lstm) {
    value c = stack(b, final_c, 0);
    results.push_back(batch_first ? b.permuted(c, {1, 0, 2}) : c);
  }
  return results;
}

template <recurrent_cell Cell>
std::vector<value> layer_of(node& n) {
  return layer(n, Cell, n.in(1), n.in(2));
}

// inputs 8 to 11: scale and zero point of W [D, I, 4*H], then those of R [D, H, 4*H], one per direction or one per
// column. onnxruntime also rounds X and the state to 8 bits; here they stay f32.
std::vector<value> dynamic_quantize_lstm(node& n) {
  builder& b = n.b;
  auto restored = [&](std::size_t i, std::size_t scale) {
    auto lifted = [&](std::size_t at) {
      auto dims = n.dims(at);
      while (dims.size() < 3)
        dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(dims.size(), 1)), 1);
      return b.to_type(b.with_dims(n.in(at), dims), element_type::f32);
    };
    value real = b.to_type(n.in(i), element_type::f32);
    if (n.has(scale + 1)) real = b.binary(fn::sub, real, lifted(scale + 1));
    return b.permuted(b.binary(fn::mul, real, lifted(scale)), {0, 2, 1});
  };
  if (n.rank(1) != 3 || n.rank(2) != 3) invalid("W and R need rank 3");
  return layer(n, recurrent_cell::lstm, restored(1, 8), restored(2, 10));
}

constexpr std::string_view limits =
    "a loop over a known number of steps for other activations than the default, clip or peepholes";
constexpr operator_row rows[] = {
    {"DynamicQuantizeLSTM", dynamic_quantize_lstm, 1, limits, microsoft_domain},
    {"LSTM", layer_of<recurrent_cell::lstm>, 7, limits},
    {"GRU", layer_of<recurrent_cell::gru>, 7, limits},
    {"RNN", layer_of<recurrent_cell::rnn>, 7, limits},
};

}  // namespace

std::span<const operator_row> recurrent_operators() { return rows; }

}  // namespace kiln::onnx_import
