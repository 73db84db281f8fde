// One direction of an RNN, GRU or LSTM, step by step in double (ONNX operator definitions RNN, GRU, LSTM; default
// activations). The state stays in double between steps and is rounded only where it is written out.
#include "ir/ops/recurrent.hpp"

#include <cmath>

#include "ir/reference/parallel.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// One time step of one batch entry; updates h and c. x: the entry's gates [G*H]; r: weights [G*H, H]; rb:
// recurrent_bias [G*H].
struct cell_step {
  const double* x;
  const double* r;
  const double* rb;
  std::int64_t hidden;

  // Row `gate * H + i` of the weights times `state`, plus the bias.
  double recurrent_product(std::int64_t gate, std::int64_t i, const std::vector<double>& state) const {
    std::int64_t row = gate * hidden + i;
    double sum = 0;
    for (std::int64_t k = 0; k < hidden; ++k) sum += r[row * hidden + k] * state[static_cast<std::size_t>(k)];
    return sum + rb[row];
  }
  double gate(std::int64_t g, std::int64_t i, const std::vector<double>& state) const {
    return x[g * hidden + i] + recurrent_product(g, i, state);
  }

  void rnn(std::vector<double>& h) const {
    auto old = h;
    for (std::size_t i = 0; i < h.size(); ++i) h[i] = std::tanh(gate(0, static_cast<std::int64_t>(i), old));
  }

  void gru(std::vector<double>& h, bool linear_before_reset) const {
    auto old = h, gated = h;
    std::vector<double> reset(h.size());
    for (std::size_t i = 0; i < h.size(); ++i) {
      reset[i] = sigmoid_of(gate(1, static_cast<std::int64_t>(i), old));
      gated[i] = reset[i] * old[i];
    }
    for (std::size_t i = 0; i < h.size(); ++i) {
      auto at = static_cast<std::int64_t>(i);
      double update = sigmoid_of(gate(0, at, old));
      double inner =
          linear_before_reset ? x[2 * hidden + at] + reset[i] * recurrent_product(2, at, old) : gate(2, at, gated);
      h[i] = (1 - update) * std::tanh(inner) + update * old[i];
    }
  }

  void lstm(std::vector<double>& h, std::vector<double>& c) const {
    auto old = h;
    for (std::size_t i = 0; i < h.size(); ++i) {
      auto at = static_cast<std::int64_t>(i);
      double input = sigmoid_of(gate(0, at, old)), output = sigmoid_of(gate(1, at, old)),
             forget = sigmoid_of(gate(2, at, old));
      c[i] = forget * c[i] + input * std::tanh(gate(3, at, old));
      h[i] = output * std::tanh(c[i]);
    }
  }
};

}  // namespace

std::vector<literal> recurrent::evaluate(std::span<const literal> inputs) const {
  auto outs = output_shapes(*this, inputs);
  auto dims = outs[0].static_dims();
  std::int64_t steps = dims[0], batch = dims[1], hidden = dims[2], gates = inputs[1].type().dims[0].value();
  auto x = widened<double>(inputs[0]), r = widened<double>(inputs[1]), rb = widened<double>(inputs[2]),
       h0 = widened<double>(inputs[3]);
  bool lstm = cell == recurrent_cell::lstm;
  auto final_h = h0, final_c = lstm ? widened<double>(inputs[4]) : std::vector<double>();
  std::vector<double> y(static_cast<std::size_t>(steps * batch * hidden));
  parallel_for(batch, steps * gates * hidden, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      auto entry = [&](std::vector<double>& states) { return states.begin() + b * hidden; };
      std::vector<double> h(entry(final_h), entry(final_h) + hidden), c;
      if (lstm) c.assign(entry(final_c), entry(final_c) + hidden);
      for (std::int64_t s = 0; s < steps; ++s) {
        std::int64_t t = reverse ? steps - 1 - s : s;
        cell_step step{x.data() + (t * batch + b) * gates, r.data(), rb.data(), hidden};
        switch (cell) {
          case recurrent_cell::rnn: step.rnn(h); break;
          case recurrent_cell::gru: step.gru(h, linear_before_reset); break;
          case recurrent_cell::lstm: step.lstm(h, c); break;
        }
        std::copy(h.begin(), h.end(), y.begin() + (t * batch + b) * hidden);
      }
      std::copy(h.begin(), h.end(), entry(final_h));
      if (lstm) std::copy(c.begin(), c.end(), entry(final_c));
    }
  });
  std::vector<literal> results{narrowed(outs[0], y), narrowed(outs[1], final_h)};
  if (lstm) results.push_back(narrowed(outs[2], final_c));
  return results;
}

}  // namespace kiln
