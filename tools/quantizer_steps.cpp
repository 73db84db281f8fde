#include "tools/quantizer_steps.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/ops/all.hpp"

namespace kiln::tools {
namespace {

constexpr double moved_steps = 0x1p-12, most_effect = 3e-2, allowance = 4;

// The number that an instruction rounds, and by which function its neighbour is found: a step of an integer has the
// same size everywhere, one of a float of 8 bits or less grows with the number.
std::optional<scalar_function> moved_by(const instruction& i) {
  if (i.inputs().empty() || !is_float(i.inputs()[0].type().type)) return {};
  if (const auto* e = i.op().get_if<elementwise>(); e && e->function == scalar_function::round)
    return scalar_function::add;
  if (const auto* c = i.op().get_if<convert>(); c && is_float(c->type) && storage_bits(c->type) <= 8)
    return scalar_function::mul;
  return {};
}

}  // namespace

bool move_rounded_numbers(module& m, double steps) {
  bool any = false;
  for (instruction& i : m.instructions()) {
    const auto function = moved_by(i);
    if (!function) continue;
    const value x = i.inputs()[0];
    value by =
        m.add_constant(literal::scalar(x.type().type, *function == scalar_function::mul ? 1 + steps / 16 : steps));
    by = m.insert(&i, broadcast{x.type().dims}, {by});
    m.set_input(&i, 0, m.insert(&i, elementwise{*function}, {x, by}));
    any = true;
  }
  return any;
}

moved_reference moved_program(const program& bound, std::span<const literal> inputs, kernel_runner run_kernel) {
  return [&bound, inputs, run_kernel = std::move(run_kernel)](double steps) -> std::vector<literal> {
    program moved = bound.clone();
    bool any = false;
    for (module& m : moved.modules()) any |= move_rounded_numbers(m, steps);
    return any ? evaluate(moved.main(), inputs, run_kernel) : std::vector<literal>{};
  };
}

std::vector<comparison> compare_with_steps(std::span<const literal> got, std::span<const literal> expected,
                                           exactness computed, const moved_reference& moved) {
  std::vector<comparison> result;
  for (std::size_t i = 0; i < expected.size(); ++i) result.push_back(compare(got[i], expected[i], computed));
  const auto may_be_a_step = [](const comparison& c) {
    return !c.ok && c.relative_norm <= most_effect && c.max_error > 0;
  };
  if (std::ranges::none_of(result, may_be_a_step)) return result;
  const std::vector<literal> up = moved(moved_steps);
  if (up.empty()) return result;
  const std::vector<literal> down = moved(-moved_steps);
  for (std::size_t i = 0; i < result.size(); ++i) {
    comparison& c = result[i];
    if (!may_be_a_step(c) || up[i].type() != down[i].type()) continue;
    const double limit = std::min(allowance * compare(up[i], down[i], computed).relative_norm, most_effect);
    if (c.relative_norm > limit) continue;
    c.ok = true, c.tolerance = limit, c.reason.clear();
  }
  return result;
}

}  // namespace kiln::tools
