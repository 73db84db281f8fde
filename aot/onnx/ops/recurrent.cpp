// LSTM, GRU and RNN: one product for the inputs of all time steps, then one `recurrent` operation or a loop
// (recurrent_steps.hpp) per direction.
#include <algorithm>
#include <array>
#include <optional>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/recurrent_steps.hpp"
#include "aot/onnx/ops/text_choice.hpp"

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

// One node. Inputs: X [T, B, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], sequence_lens, h0 [D, B, H],
// c0 [D, B, H], P. layout=1 puts the batch first.
class recurrent_layer {
 public:
  recurrent_layer(node& n, recurrent_cell cell, value weights, value recurrence);
  // Y [T, D, B, H] and Y_h, Y_c [D, B, H]. With the batch first, Y is [B, T, D, H] and the states are [B, D, H].
  std::vector<value> outputs();

 private:
  // The product of all inputs with the weights of a direction, [T, B, G*H], with its biases, and the bias [G*H] that is
  // added later, within the cell.
  struct gate_inputs {
    value products, late_bias;
  };
  gate_inputs inputs_of(std::int64_t direction);
  // Results [T, B, H], and the last hidden and cell states [B, H] of a direction.
  struct direction_results {
    value all, hidden, cell;
  };
  direction_results run(std::int64_t direction, const gate_inputs& inputs);
  value initial(std::size_t input, std::int64_t direction);

  node& n_;
  builder& b_ = n_.b;
  recurrent_cell cell_;
  bool is_lstm_ = cell_ == recurrent_cell::lstm;
  bool batch_first_ = n_.integer("layout", 0) != 0;
  bool reset_after_ = cell_ == recurrent_cell::gru && n_.integer("linear_before_reset", 0) != 0;
  value weights_, recurrence_, x_;
  element_type type_;
  dim steps_ = 0, batch_ = 0, features_ = 0, gates_ = 0, hidden_ = 0;
  std::string direction_ = n_.text("direction", "forward");
  std::int64_t directions_ = direction_ == "bidirectional" ? 2 : 1;
  value varying_;                            // lengths of the sequences, i64[B]; empty if all are as long as X
  std::optional<sequence_lengths> lengths_;  // the same
  value flat_;                               // X as [T*B, I]
};

recurrent_layer::recurrent_layer(node& n, recurrent_cell cell, value weights, value recurrence)
    : n_(n), cell_(cell), weights_(weights), recurrence_(recurrence), x_(n.in(0)), type_(x_.type().type) {
  if (x_.type().rank() != 3 || weights.type().rank() != 3 || recurrence.type().rank() != 3)
    invalid("X, W and R need rank 3");
  if (batch_first_) x_ = b_.permuted(x_, {1, 0, 2});
  steps_ = x_.type().dims.at(0), batch_ = x_.type().dims.at(1), features_ = x_.type().dims.at(2);
  gates_ = weights.type().dims.at(1), hidden_ = recurrence.type().dims.at(2);
  std::int64_t per_cell = is_lstm_ ? 4 : cell == recurrent_cell::gru ? 3 : 1;
  if (!(gates_ == hidden_ * dim(per_cell)))
    invalid("W " + weights.type().str() + " does not fit R " + recurrence.type().str());
  require_one_of("direction", direction_, std::array<std::string_view, 3>{"forward", "reverse", "bidirectional"});
  if (!(weights.type().dims.at(0) == dim(directions_)) || !(recurrence.type().dims.at(0) == dim(directions_)))
    invalid("W and R need " + std::to_string(directions_) + " directions");
  varying_ = varying_lengths(n, steps_);
  lengths_.emplace(b_, varying_, steps_);
  flat_ = b_.with_dims(x_, {steps_ * batch_, features_});
}

value recurrent_layer::initial(std::size_t input, std::int64_t direction) {
  if (!n_.has(input)) return b_.broadcast_to(b_.scalar(type_, 0), {batch_, hidden_});
  return direction_of(b_, batch_first_ ? b_.permuted(n_.in(input), {1, 0, 2}) : n_.in(input), direction);
}

recurrent_layer::gate_inputs recurrent_layer::inputs_of(std::int64_t direction) {
  value products = b_.add(dot{false, true, type_}, {flat_, direction_of(b_, weights_, direction)});
  value late_bias = b_.broadcast_to(b_.scalar(type_, 0), {gates_});
  if (n_.has(3)) {
    value bias = direction_of(b_, n_.in(3), direction);
    if (bias.type().rank() != 1 || !(bias.type().dims.at(0) == gates_ * dim(2)))
      invalid("B " + n_.type(3).str() + " does not fit W " + weights_.type().str());
    if (!gates_.is_static()) refuse("the number of gates is symbolic");
    value of_input = b_.slice_axis(bias, 0, 0, gates_), of_state = b_.slice_axis(bias, 0, gates_.value(), gates_);
    // The bias of a GRU's candidate is added before the reset gate is applied, so it cannot be added in advance.
    if (reset_after_) late_bias = of_state;
    products = b_.binary(fn::add, products, reset_after_ ? of_input : b_.binary(fn::add, of_input, of_state));
  }
  return {b_.with_dims(products, {steps_, batch_, gates_}), late_bias};
}

recurrent_layer::direction_results recurrent_layer::run(std::int64_t direction, const gate_inputs& inputs) {
  const bool backwards = direction_ == "reverse" || direction == 1;
  value products = inputs.products;
  value state = initial(5, direction), cell_state = is_lstm_ ? initial(6, direction) : value{};
  value state_weights = direction_of(b_, recurrence_, direction);
  const auto activations = activations_of(n_, default_activations(cell_), static_cast<std::size_t>(direction));
  const bool plain = !n_.has(7) && !n_.has_attribute("clip") && !n_.integer("input_forget", 0) &&
                     std::ranges::equal(activations, default_activations(cell_), {}, &recurrent_activation::name);
  if (!plain) {
    value peepholes = n_.has(7) ? direction_of(b_, n_.in(7), direction) : value{};
    auto made = stepped_direction(n_, {{cell_, backwards, reset_after_},
                                       activations,
                                       n_.real("clip", 0),
                                       n_.integer("input_forget", 0) != 0,
                                       products,
                                       state_weights,
                                       inputs.late_bias,
                                       state,
                                       cell_state,
                                       peepholes,
                                       varying_});
    return {made[0], made[1], is_lstm_ ? made[2] : value{}};
  }
  const sequence_lengths& lengths = *lengths_;
  if (lengths && backwards) products = lengths.reversed(products);
  if (is_lstm_) products = lengths.holding_cell(products, hidden_);
  std::vector<value> arguments{products, state_weights, inputs.late_bias, state};
  if (is_lstm_) arguments.push_back(cell_state);
  value y = b_.add(recurrent{cell_, backwards && !lengths, reset_after_}, arguments);
  value last = lengths ? lengths.last(y, state) : builder::output(y, 1);
  value ordered = lengths && backwards ? lengths.reversed(y) : y;
  return {lengths.masked(ordered), last, is_lstm_ ? builder::output(y, 2) : value{}};
}

std::vector<value> recurrent_layer::outputs() {
  // The products of all directions come first: then nothing stands between the directions' recurrences, which the host
  // runs side by side.
  std::vector<gate_inputs> inputs;
  for (std::int64_t d = 0; d < directions_; ++d) inputs.push_back(inputs_of(d));
  std::vector<value> all, hidden, cell;
  for (std::int64_t d = 0; d < directions_; ++d) {
    const direction_results made = run(d, inputs[static_cast<std::size_t>(d)]);
    all.push_back(made.all), hidden.push_back(made.hidden), cell.push_back(made.cell);
  }
  value y = stack(b_, all, 1), h = stack(b_, hidden, 0);
  if (batch_first_) {
    y = b_.permuted(y, {2, 0, 1, 3});
    h = b_.permuted(h, {1, 0, 2});
  }
  std::vector<value> results{y, h};
  if (is_lstm_) {
    value c = stack(b_, cell, 0);
    results.push_back(batch_first_ ? b_.permuted(c, {1, 0, 2}) : c);
  }
  return results;
}

template <recurrent_cell Cell>
std::vector<value> layer_of(node& n) {
  return recurrent_layer(n, Cell, n.in(1), n.in(2)).outputs();
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
  return recurrent_layer(n, recurrent_cell::lstm, restored(1, 8), restored(2, 10)).outputs();
}

constexpr std::string_view limits = "a loop over the steps for other activations than the default, clip or peepholes";
constexpr operator_row rows[] = {
    {"DynamicQuantizeLSTM", dynamic_quantize_lstm, 1, limits, microsoft_domain},
    {"LSTM", layer_of<recurrent_cell::lstm>, 7, limits},
    {"GRU", layer_of<recurrent_cell::gru>, 7, limits},
    {"RNN", layer_of<recurrent_cell::rnn>, 7, limits},
};

}  // namespace

std::span<const operator_row> recurrent_operators() { return rows; }

}  // namespace kiln::onnx_import
