// LSTM, GRU and RNN: one product for the inputs of all time steps, then one `recurrent` operation per direction.
#include <algorithm>
#include <cctype>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

void check_attributes(node& n, recurrent_cell cell) {
  std::vector<std::string> defaults = cell == recurrent_cell::rnn ? std::vector<std::string>{"tanh"}
                                      : cell == recurrent_cell::gru
                                          ? std::vector<std::string>{"sigmoid", "tanh"}
                                          : std::vector<std::string>{"sigmoid", "tanh", "tanh"};
  auto activations = n.texts("activations");
  for (std::size_t i = 0; i < activations.size(); ++i)
    if (lower(activations[i]) != defaults[i % defaults.size()])
      refuse("activation " + activations[i] + " is not supported, only the default " + defaults[i % defaults.size()]);
  if (n.has_attribute("clip")) refuse("attribute 'clip' is not supported");
  if (n.integer("input_forget", 0)) refuse("input_forget=1 is not supported");
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

// inputs: X [T, B, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], sequence_lens, h0 [D, B, H], c0 [D, B, H], P.
// layout=1 puts the batch first.
std::vector<value> layer(node& n, recurrent_cell cell, value weights, value recurrence) {
  builder& b = n.b;
  check_attributes(n, cell);
  if (n.has(7)) refuse("peepholes (input 7) are not supported");
  bool batch_first = n.integer("layout", 0) != 0;
  value x = n.in(0);
  if (x.type().rank() != 3 || weights.type().rank() != 3 || recurrence.type().rank() != 3)
    invalid("X, W and R need rank 3");
  if (batch_first) x = b.permuted(x, {1, 0, 2});
  dim steps = x.type().dims[0], batch = x.type().dims[1], features = x.type().dims[2];
  dim gates = weights.type().dims[1], hidden = recurrence.type().dims[2];
  std::int64_t per_cell = cell == recurrent_cell::lstm ? 4 : cell == recurrent_cell::gru ? 3 : 1;
  if (!(gates == hidden * dim(per_cell)))
    invalid("W " + weights.type().str() + " does not fit R " + recurrence.type().str());
  std::string direction = n.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    invalid("direction '" + direction + "' is unknown");
  std::int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (!(weights.type().dims[0] == dim(directions)) || !(recurrence.type().dims[0] == dim(directions)))
    invalid("W and R need " + std::to_string(directions) + " directions");
  if (n.has(4))
    for (auto length : n.numbers(4, "sequence lengths"))
      if (!(dim(length) == steps)) refuse("sequences of different lengths are not supported");
  element_type type = x.type().type;
  bool reset_after = cell == recurrent_cell::gru && n.integer("linear_before_reset", 0) != 0;
  value flat = b.with_dims(x, {steps * batch, features});
  auto initial = [&](std::size_t i, std::int64_t d) {
    if (!n.has(i)) return b.broadcast_to(b.scalar(type, 0), {batch, hidden});
    return direction_of(b, batch_first ? b.permuted(n.in(i), {1, 0, 2}) : n.in(i), d);
  };
  std::vector<value> outputs, final_h, final_c;
  for (std::int64_t d = 0; d < directions; ++d) {
    value products = b.add(dot{false, true, type}, {flat, direction_of(b, weights, d)});
    value late_bias = b.broadcast_to(b.scalar(type, 0), {gates});
    if (n.has(3)) {
      value bias = direction_of(b, n.in(3), d);
      if (bias.type().rank() != 1 || !(bias.type().dims[0] == gates * dim(2)))
        invalid("B " + n.type(3).str() + " does not fit W " + weights.type().str());
      if (!gates.is_static()) refuse("the number of gates is symbolic");
      value of_input = b.slice_axis(bias, 0, 0, gates), of_state = b.slice_axis(bias, 0, gates.value(), gates);
      if (reset_after)
        // The candidate's bias is added before the reset gate is applied, so it cannot be added in advance.
        late_bias = of_state;
      products = b.binary(fn::add, products, reset_after ? of_input : b.binary(fn::add, of_input, of_state));
    }
    recurrent op{cell, direction == "reverse" || d == 1, reset_after};
    std::vector<value> arguments{b.with_dims(products, {steps, batch, gates}), direction_of(b, recurrence, d),
                                 late_bias, initial(5, d)};
    if (cell == recurrent_cell::lstm) arguments.push_back(initial(6, d));
    value y = b.add(op, arguments);
    outputs.push_back(y);
    final_h.push_back(builder::output(y, 1));
    if (cell == recurrent_cell::lstm) final_c.push_back(builder::output(y, 2));
  }
  // Y [T, D, B, H] and Y_h, Y_c [D, B, H]. With the batch first, Y is [B, T, D, H] and the states are [B, D, H].
  value y = stack(b, outputs, 1), h = stack(b, final_h, 0);
  if (batch_first) {
    y = b.permuted(y, {2, 0, 1, 3});
    h = b.permuted(h, {1, 0, 2});
  }
  std::vector<value> results{y, h};
  if (cell == recurrent_cell::lstm) {
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

constexpr std::string_view limits = "default activations; no clip, peepholes or varying lengths";
constexpr operator_row rows[] = {
    {"DynamicQuantizeLSTM", dynamic_quantize_lstm, 1, limits, microsoft_domain},
    {"LSTM", layer_of<recurrent_cell::lstm>, 7, limits},
    {"GRU", layer_of<recurrent_cell::gru>, 7, limits},
    {"RNN", layer_of<recurrent_cell::rnn>, 7, limits},
};

}  // namespace

std::span<const operator_row> recurrent_operators() { return rows; }

}  // namespace kiln::onnx_import
