#include "aot/passes/simplify_attention.hpp"

#include <numeric>

#include "aot/passes/facts.hpp"
#include "aot/passes/rewrite.hpp"

namespace kiln {
namespace {

using match::op;

head_layout other(head_layout layout) {
  return layout == head_layout::heads_first ? head_layout::sequence_first : head_layout::heads_first;
}

// Composes two permutations.
std::vector<std::int64_t> composed(const std::vector<std::int64_t>& inner, const std::vector<std::int64_t>& outer) {
  std::vector<std::int64_t> both;
  for (std::int64_t axis : outer) both.push_back(inner[static_cast<std::size_t>(axis)]);
  return both;
}

value transposes_as_layouts(rewriter& write, value root, const match::captures&) {
  attention a = *root.producer->op().get_if<attention>();
  std::vector<value> inputs = root.producer->inputs();
  bool changed = false;
  for (auto [k, layout] : {std::pair{0, &a.query_layout}, {1, &a.key_layout}, {2, &a.value_layout}}) {
    value& input = inputs[static_cast<std::size_t>(k)];
    const auto* t = input.producer->op().get_if<transpose>();
    if (!t) continue;
    value x = input.producer->inputs()[0];
    auto rest = composed(t->permutation, head_swap(input.type().rank()));
    if (!moves_nothing(x.type().dims, rest)) continue;
    input = write.transpose_by(x, rest);
    *layout = other(*layout);
    changed = true;
  }
  return changed ? write.add(a, inputs) : value{};
}

value transpose_as_output_layout(rewriter& write, value root, const match::captures& found) {
  value result = found["result"];
  if (!has_single_use(write.in(), result)) return {};
  attention a = *result.producer->op().get_if<attention>();
  auto swap = head_swap(result.type().rank());
  auto rest = composed(swap, root.producer->op().get_if<transpose>()->permutation);
  if (!moves_nothing(permute(result.type().dims, swap), rest)) return {};
  a.output_layout = other(a.output_layout);
  return write.transpose_by(write.add(a, result.producer->inputs()), rest);
}

value mask_without_broadcast(rewriter& write, value root, const match::captures&) {
  std::vector<value> inputs = root.producer->inputs();
  if (inputs.size() < 4 || !inputs[3].producer->op().is<broadcast>()) return {};
  inputs[3] = inputs[3].producer->inputs()[0];
  return write.add(root.producer->op(), inputs);
}

}  // namespace

std::vector<std::int64_t> head_swap(std::size_t rank) {
  std::vector<std::int64_t> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[rank - 3], permutation[rank - 2]);
  return permutation;
}

bool simplify_attention::apply(module& m) const {
  static const std::vector<rule> rules{
      {"transposes_as_layouts", op<attention>(), transposes_as_layouts},
      {"transpose_as_output_layout", op<transpose>().inputs({op<attention>().as("result")}),
       transpose_as_output_layout},
      {"mask_without_broadcast", op<attention>(), mask_without_broadcast},
  };
  return apply_rules(m, rules, log, name());
}

}  // namespace kiln
