#include "aot/passes/merge_parallel_contractions.hpp"

#include <algorithm>
#include <numeric>

#include "aot/kernels/traits.hpp"
#include "aot/passes/compose_contractions.hpp"
#include "aot/passes/facts.hpp"
#include "aot/passes/linear_map.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/rewrite_log.hpp"
#include "ir/cancellation.hpp"

namespace kiln {
namespace {

bool is_sum(value v) { return is_function(v, scalar_function::add) && is_float(v); }

// Returns the terms of the sum: operands of `root`, and of sums whose only user is `root`.
std::vector<value> terms_of(const module& m, value root) {
  std::vector<value> terms, open{root};
  while (!open.empty()) {
    const value v = open.back();
    open.pop_back();
    if (v != root && !(is_sum(v) && has_single_use(m, v))) {
      terms.push_back(v);
      continue;
    }
    open.push_back(v.producer->inputs()[1]);
    open.push_back(v.producer->inputs()[0]);
  }
  return terms;
}

// Returns image · factor with one number per channel, as a depthwise convolution with a window of one element.
std::optional<linear_map> find_scaling(value v) {
  if (!is_function(v, scalar_function::mul) || !is_float(v) || v.type().rank() < 3) return std::nullopt;
  for (std::size_t k : {0, 1}) {
    const value x = v.producer->inputs()[k], factor = v.producer->inputs()[1 - k];
    if (!is_constant_like(factor) || !x.type().dims[1].is_static()) continue;
    const value source = along_one_axis(factor, 1);
    if (!source || !source.type().is_static()) continue;
    const std::int64_t channels = x.type().dims[1].value(), count = source.type().element_count();
    if (count != 1 && count != channels) continue;
    const std::vector<std::int64_t> ones(v.type().rank() - 2, 1), zeros(v.type().rank() - 2, 0);
    return linear_map{.input = x,
                      .weights = source,
                      .result = v,
                      .channels = channels,
                      .filters = channels,
                      .groups = channels,
                      .geometry = {ones, ones, zeros, zeros, channels},
                      .window = ones};
  }
  return std::nullopt;
}

struct branch {
  linear_map map;
  std::size_t term;
  // The branch is the image itself, scaled per channel.
  bool scales = false;
};

std::optional<branch> find_branch(const module& m, value term, std::size_t number) {
  if (!has_single_use(m, term)) return std::nullopt;
  if (auto map = find_linear_map(m, term); map && !map->bias) return branch{*map, number};
  if (auto map = find_scaling(term)) return branch{*map, number, true};
  return std::nullopt;
}

// Returns the dilation along an axis. A window of one element fits any dilation, so `any` is returned.
std::int64_t dilation_of(const branch& b, std::size_t axis, std::int64_t any) {
  return b.map.window[axis] == 1 ? any : b.map.geometry.dilations[axis];
}

// Returns the convolution whose window contains the windows of both. nullopt if the taps do not lie on a common grid.
std::optional<linear_map> common_map(const branch& a, const branch& b) {
  const linear_map &left = a.map, &right = b.map;
  if (left.is_dot != right.is_dot || left.filters != right.filters || left.result.type() != right.result.type() ||
      left.window.size() != right.window.size() || left.geometry.strides != right.geometry.strides)
    return std::nullopt;
  linear_map made = left;
  made.groups = made.geometry.groups = std::gcd(left.groups, right.groups);
  for (std::size_t i = 0; i < made.window.size(); ++i) {
    const std::int64_t step = dilation_of(a, i, right.geometry.dilations[i]);
    if (dilation_of(b, i, step) != step) return std::nullopt;
    const std::int64_t first = std::max(left.geometry.pads_begin[i], right.geometry.pads_begin[i]);
    const std::int64_t of_left = first - left.geometry.pads_begin[i], of_right = first - right.geometry.pads_begin[i];
    if (of_left % step != 0 || of_right % step != 0) return std::nullopt;
    made.window[i] = std::max(of_left / step + left.window[i], of_right / step + right.window[i]);
    made.geometry.dilations[i] = step;
    made.geometry.pads_begin[i] = first;
    // The result must be as large as that of the left branch.
    made.geometry.pads_end[i] = left.geometry.pads_end[i] + (made.window[i] - left.window[i]) * step - of_left;
    if (made.geometry.pads_begin[i] < 0 || made.geometry.pads_end[i] < 0) return std::nullopt;
  }
  return made;
}

// Adds the branch's weights to `sum`, which has the layout of `made`: [filters, channels / groups, window...].
void add_weights(const branch& b, const linear_map& made, std::vector<double>& sum) {
  linear_numbers own = numbers_of(b.map);
  if (b.scales) own.weights.resize(static_cast<std::size_t>(b.map.filters), own.weights[0]);
  const std::vector<double> from = with_groups(b.map, own.weights, made.groups);
  const std::int64_t taps = b.map.taps(), wide = made.taps(), rows = static_cast<std::int64_t>(from.size()) / taps;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    std::int64_t rest = tap, stride = 1, to = 0;
    for (std::size_t i = made.window.size(); i-- > 0;) {
      const std::int64_t shift =
          (made.geometry.pads_begin[i] - b.map.geometry.pads_begin[i]) / made.geometry.dilations[i];
      to += (rest % b.map.window[i] + shift) * stride;
      rest /= b.map.window[i], stride *= made.window[i];
    }
    for (std::int64_t row = 0; row < rows; ++row)
      sum[static_cast<std::size_t>(row * wide + to)] += from[static_cast<std::size_t>(row * taps + tap)];
  }
}

// Returns the sum of two branches as one product; `a` must be a product. Null if the sum is no single product or costs
// more.
value merged(rewriter& write, const branch& a, const branch& b, rewrite_log* log) {
  auto made = common_map(a, b);
  if (!made) return {};
  const double moved = 2 * estimated_elements(made->result.type());
  if (estimated_cost(made->products(), made->weight_elements()) >
      estimated_cost(a.map.products() + b.map.products(), a.map.weight_elements() + b.map.weight_elements() + moved))
    return {};
  std::vector<double> sum(static_cast<std::size_t>(made->weight_elements()));
  add_weights(a, *made, sum);
  add_weights(b, *made, sum);
  auto weights = weight_literal(*made, sum);
  if (!weights) return {};
  const operation op = made->is_dot ? operation(dot{.transpose_b = made->transposed, .type = made->result.type().type})
                                    : operation(made->geometry);
  value result = write.add(op, {made->input, write.constant(*std::move(weights))});
  if (result.type() != made->result.type()) return {};
  if (log)
    log->fired("merge_parallel_contractions", made->is_dot ? "products" : "convolutions", write.root()->origin(),
               {2 * (a.map.products() + b.map.products() - made->products()),
                moved * static_cast<double>(storage_bits(result.type().type)) / 8});
  return result;
}

// Merges the first pair of branches that can be merged. Returns the new sum, or null.
value merge_two(rewriter& write, value root, rewrite_log* log) {
  const module& m = write.in();
  std::vector<value> terms = terms_of(m, root);
  std::vector<branch> branches;
  for (std::size_t i = 0; i < terms.size(); ++i)
    if (auto found = find_branch(m, terms[i], i)) branches.push_back(*std::move(found));
  for (std::size_t i = 0; i < branches.size(); ++i)
    for (std::size_t j = i + 1; j < branches.size(); ++j) {
      const branch &a = branches[branches[i].scales ? j : i], &b = branches[branches[i].scales ? i : j];
      if (a.scales || a.map.input != b.map.input) continue;
      value sum = merged(write, a, b, log);
      if (!sum) continue;
      for (std::size_t k = 0; k < terms.size(); ++k)
        if (k != a.term && k != b.term) sum = write.apply(scalar_function::add, {sum, terms[k]});
      return sum;
    }
  return {};
}

}  // namespace

bool merge_parallel_contractions::apply(module& m) const {
  bool changed = false;
  for (place here = m.instructions().begin(); here != m.instructions().end();) {
    check_stop();
    instruction& at = *here;
    const value root = at.output();
    const bool inner = at.users().size() == 1 && is_sum(at.users()[0]->output()) && has_single_use(m, root);
    if (!is_sum(root) || inner || !m.has_uses(&at)) {
      ++here;
      continue;
    }
    rewriter write(m, here);
    if (value made = merge_two(write, root, log)) {
      m.replace(root, made);
      changed = true;
      // Erase the old sum first, because it would count as a user of its terms. Then continue with the new sum, which
      // may have more branches to merge.
      while (&*here != made.producer) --here;
      m.erase_dead();
      continue;
    }
    ++here;
  }
  return changed;
}

}  // namespace kiln
