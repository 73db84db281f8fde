#include "aot/passes/compose_contractions.hpp"

#include "aot/kernels/traits.hpp"
#include "aot/passes/facts.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/rewrite_log.hpp"
#include "ir/cancellation.hpp"

namespace kiln {
namespace {

// Cost model: the time in which a convolution reads or writes one element of memory is enough for about this many
// multiplications (measured by bench/convolution_pairs.py).
constexpr double products_per_element = 8;
// Upper bound on the multiplications for computing composed weights at compile time: about a second.
constexpr double most_products_ahead = double{1u << 30};

double products_ahead(const linear_map& outer, const linear_map& inner) {
  return outer.weight_elements() * static_cast<double>(inner.channels / inner.groups * inner.taps());
}

operation operation_of(const linear_map& map) {
  if (!map.is_dot) return map.geometry;
  return dot{.transpose_b = map.transposed, .type = map.result.type().type};
}

std::string_view refusal_of(const module& m, const linear_map& outer, const linear_map& inner, const composition& c) {
  if (!has_single_use(m, outer.input)) return "something else uses the intermediate result";
  if (!c.refusal.empty()) return c.refusal;
  if (!composition_saves_work(outer, inner, c.map)) return "the composition would cost more";
  if (products_ahead(outer, inner) > most_products_ahead) return "the composed weights would take too long to compute";
  return {};
}

value biased(rewriter& write, value v, const std::vector<double>& bias) {
  if (bias.empty()) return v;
  std::vector<dim> dims(v.type().rank() - 1, dim(1));
  dims[0] = static_cast<std::int64_t>(bias.size());
  const value data = write.constant(literal::from_doubles({v.type().type, dims}, bias));
  return write.apply(scalar_function::add, {v, write.broadcast_to(data, v.type().dims)});
}

// Returns the composed product, or null if the composition is refused.
value composed(rewriter& write, value root, rewrite_log* log) {
  auto outer = find_linear_map(write.in(), root);
  auto inner = outer ? find_linear_map(write.in(), outer->input) : std::nullopt;
  if (!inner) return {};
  auto refuse = [&](std::string_view reason) {
    if (log) log->refused("compose_contractions", reason, root.producer->origin());
    return value{};
  };
  composition c = compose(*outer, *inner);
  if (auto reason = refusal_of(write.in(), *outer, *inner, c); !reason.empty()) return refuse(reason);
  const linear_numbers numbers = composed_numbers(*outer, *inner, c.map);
  auto weights = weight_literal(c.map, numbers.weights);
  if (!weights) return refuse("a composed weight is too large for its type");
  value made = write.add(operation_of(c.map), {inner->input, write.constant(*std::move(weights))});
  if (made.type() != root.type()) return refuse("the extents differ");
  if (log) {
    const double moved = 2 * estimated_elements(inner->result.type()) + inner->weight_elements() +
                         outer->weight_elements() - c.map.weight_elements();
    log->fired("compose_contractions", inner->is_dot ? "products" : "convolutions", root.producer->origin(),
               {2 * (inner->products() + outer->products() - c.map.products()),
                moved * static_cast<double>(storage_bits(root.type().type)) / 8});
  }
  return biased(write, made, numbers.bias);
}

}  // namespace

double estimated_cost(double products, double elements_moved) {
  return products + products_per_element * elements_moved;
}

bool composition_saves_work(const linear_map& outer, const linear_map& inner, const linear_map& composed) {
  const double between = estimated_elements(inner.result.type());
  return estimated_cost(composed.products(), composed.weight_elements()) <
         estimated_cost(inner.products() + outer.products(),
                        inner.weight_elements() + outer.weight_elements() + 2 * between);
}

bool compose_contractions::apply(module& m) const {
  bool ever = false;
  for (bool changed = true; changed; ever |= changed) {
    changed = false;
    for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
      check_stop();
      instruction& at = *here;
      if (!at.op().is<dot>() && !at.op().is<convolution>()) continue;
      if (!m.has_uses(&at)) continue;
      rewriter write(m, here);
      value made = composed(write, at.output(), log);
      if (!made) continue;
      m.replace(at.output(), made);
      changed = true;
    }
    m.erase_dead();
  }
  return ever;
}

}  // namespace kiln
