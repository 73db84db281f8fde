#include "aot/passes/folding_budget.hpp"

#include <algorithm>
#include <cmath>

#include "ir/ops/all.hpp"

namespace kiln {
namespace {

constexpr double free_bytes = 256 << 20, steps_per_element = 64, copies = 4;

// Estimates the cost of an evaluation. The estimate is too high for operations that are rarely folded.
double steps_of(const instruction& at) {
  double made = 0, read = 0, largest = 0;
  for (const shape& out : at.outputs()) made += static_cast<double>(out.element_count());
  for (value input : at.inputs()) {
    const auto count = static_cast<double>(input.type().element_count());
    read += count;
    largest = std::max(largest, count);
  }
  const operation& op = at.op();
  // [m, k] by [k, n]: the product of the inputs' sizes divided by the output's size is k * k.
  if (op.is<dot>()) {
    const double depth = std::sqrt(static_cast<double>(at.inputs()[0].type().element_count()) *
                                   static_cast<double>(at.inputs()[1].type().element_count()) / std::max(made, 1.0));
    return read + made * std::max(depth, 1.0);
  }
  const bool windowed = op.is<convolution>() || op.is<transposed_convolution>() || op.is<pooling>() ||
                        op.is<attention>() || op.is<recurrent>() || op.is<resize>();
  return windowed ? read + made * std::max(largest, 1.0) : read + made;
}

}  // namespace

folding_budget::folding_budget(const program& p, double steps) : steps_(steps), bytes_(free_bytes) {
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<constant>()) {
        steps_ += steps_per_element * static_cast<double>(c->data.type().element_count());
        bytes_ += copies * static_cast<double>(c->data.bytes().size());
      }
}

bool folding_budget::take(const instruction& at) {
  double bytes = 0;
  for (const shape& out : at.outputs()) bytes += static_cast<double>(out.bytes());
  const double steps = steps_of(at);
  if (steps > steps_ || bytes > bytes_) return false;
  steps_ -= steps;
  bytes_ -= bytes;
  return true;
}

}  // namespace kiln
