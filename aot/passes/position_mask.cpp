#include "aot/passes/position_mask.hpp"

#include <algorithm>
#include <map>

#include "aot/passes/facts.hpp"

namespace kiln {
namespace {

using enum scalar_function;

// A number that is linear in the indices: the sum of factors[axis] * index[axis], plus `rest`.
struct linear {
  std::vector<std::int64_t> factors;
  dim rest = 0;
};

// The elements of a value as a function of positions. If `chosen` is false, each element is the linear number.
// Otherwise it is `yes` where the linear number is at most 0, and `no` elsewhere.
struct form {
  linear number;
  bool chosen = false;
  double yes = 0, no = 0;
};

constexpr std::size_t most_operations = 64;

// Integers below 2^24 are exact in these types.
bool holds_positions(element_type type) { return storage_bits(type) >= 32; }

linear combined(const linear& a, std::int64_t b_factor, const linear& b) {
  linear sum = a;
  for (std::size_t i = 0; i < sum.factors.size(); ++i) sum.factors[i] += b_factor * b.factors[i];
  sum.rest = sum.rest + dim(b_factor) * b.rest;
  return sum;
}

// A constant whose elements are evenly spaced along one axis, or all equal.
std::optional<form> of_constant(const literal& data) {
  const std::vector<std::int64_t> dims = data.type().static_dims();
  form found{{std::vector<std::int64_t>(dims.size()), 0}};
  const std::int64_t count = data.type().element_count();
  const auto long_axis = std::ranges::find_if(dims, [](std::int64_t d) { return d != 1; });
  if (count == 0 || !holds_positions(data.type().type) || (long_axis != dims.end() && *long_axis != count))
    return std::nullopt;
  const auto first = static_cast<std::int64_t>(data.at(0)),
             step = count > 1 ? static_cast<std::int64_t>(data.at(1)) - first : 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (data.at(i) != static_cast<double>(first + i * step)) return std::nullopt;
  if (count > 1) found.number.factors[static_cast<std::size_t>(long_axis - dims.begin())] = step;
  found.number.rest = first;
  return found;
}

class finder {
 public:
  std::optional<form> form_of(value v) {
    if (const auto known = known_.find(v); known != known_.end()) return known->second;
    if (known_.size() == most_operations) return std::nullopt;
    known_[v];
    return known_[v] = find(v);
  }

 private:
  std::optional<form> find(value v);
  std::optional<form> of_broadcast(value v);
  std::optional<form> of_reshape(value v);
  std::optional<form> of_transpose(value v);
  std::optional<form> of_both(value v);
  std::optional<form> of_function(value v);

  std::map<value, std::optional<form>> known_;
};

std::optional<form> finder::of_broadcast(value v) {
  auto found = form_of(v.producer->inputs()[0]);
  if (!found) return std::nullopt;
  auto& factors = found->number.factors;
  factors.insert(factors.begin(), v.type().rank() - factors.size(), 0);
  return found;
}

// A reshape that only adds and removes axes of extent 1.
std::optional<form> finder::of_reshape(value v) {
  const auto &from = v.producer->inputs()[0].type().dims, &to = v.type().dims;
  auto found = form_of(v.producer->inputs()[0]);
  if (!found) return std::nullopt;
  std::vector<std::int64_t> factors(to.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == dim(1)) continue;
    while (at < from.size() && from[at] == dim(1)) ++at;
    if (at == from.size() || !(from[at] == to[i])) return std::nullopt;
    factors[i] = found->number.factors[at++];
  }
  if (std::any_of(from.begin() + static_cast<std::ptrdiff_t>(at), from.end(),
                  [](const dim& d) { return !(d == dim(1)); }))
    return std::nullopt;
  found->number.factors = std::move(factors);
  return found;
}

std::optional<form> finder::of_transpose(value v) {
  auto found = form_of(v.producer->inputs()[0]);
  if (!found) return std::nullopt;
  const auto before = found->number.factors;
  const auto& permutation = v.producer->op().get_if<transpose>()->permutation;
  for (std::size_t i = 0; i < permutation.size(); ++i)
    found->number.factors[i] = before[static_cast<std::size_t>(permutation[i])];
  return found;
}

// Sums of ones: the importer writes the size of an open dimension as such a sum.
std::optional<form> of_sum(value v) {
  const auto* r = v.producer->op().get_if<reduce>();
  const value ones = v.producer->inputs()[0];
  if (!r || r->kind != reduction_kind::sum || !is_splat(ones, 1) || !holds_positions(v.type().type))
    return std::nullopt;
  form found{{std::vector<std::int64_t>(v.type().rank()), 1}};
  for (std::int64_t axis : r->axes)
    found.number.rest =
        found.number.rest * ones.type().dims[static_cast<std::size_t>(normalize_axis(axis, ones.type().rank()))];
  return found;
}

// a <= b as "a - b is at most 0", and so on.
std::optional<form> comparison(scalar_function f, const linear& a, const linear& b) {
  form found{{}, true, 1, 0};
  if (f == less_equal || f == less) found.number = combined(a, -1, b);
  else if (f == greater_equal || f == greater) found.number = combined(b, -1, a);
  else return std::nullopt;
  if (f == less || f == greater) found.number.rest = found.number.rest + dim(1);
  return found;
}

bool is_same(const linear& a, const linear& b) { return a.factors == b.factors && a.rest == b.rest; }

// Evaluates an operation for both numbers of its operands, which are chosen by the same condition or always equal.
std::optional<form> finder::of_both(value v) {
  std::optional<form> result;
  std::vector<literal> yes, no;
  for (value input : v.producer->inputs()) {
    double of_yes, of_no;
    if (auto number = splat_of(input)) {
      of_yes = of_no = *number;
    } else {
      const auto found = form_of(input);
      if (!found || !found->chosen || (result && !is_same(result->number, found->number))) return std::nullopt;
      of_yes = found->yes, of_no = found->no;
      result = found;
    }
    yes.push_back(literal::scalar(input.type().type, of_yes));
    no.push_back(literal::scalar(input.type().type, of_no));
  }
  if (!result) return std::nullopt;
  const operation& op = v.producer->op();
  const auto evaluate = [&](const std::vector<literal>& inputs) {
    return op.is<convert>() ? op.get_if<convert>()->evaluate(inputs)[0].at(0)
                            : op.get_if<elementwise>()->evaluate(inputs)[0].at(0);
  };
  result->yes = evaluate(yes), result->no = evaluate(no);
  return result;
}

std::optional<form> finder::of_function(value v) {
  const scalar_function f = *function_of(v);
  const auto& inputs = v.producer->inputs();
  if (inputs.size() == 2) {
    const auto a = form_of(inputs[0]), b = form_of(inputs[1]);
    if (a && b && !a->chosen && !b->chosen) {
      if (f == add || f == sub) return form{combined(a->number, f == add ? 1 : -1, b->number)};
      return comparison(f, a->number, b->number);
    }
  }
  return of_both(v);
}

std::optional<form> finder::find(value v) {
  if (const literal* data = module::constant(v)) return of_constant(*data);
  const operation& op = v.producer->op();
  if (const auto* i = op.get_if<iota>()) {
    form found{{std::vector<std::int64_t>(i->dims.size()), 0}};
    found.number.factors[static_cast<std::size_t>(i->axis)] = 1;
    return holds_positions(i->type) ? std::optional(found) : std::nullopt;
  }
  if (op.is<broadcast>()) return of_broadcast(v);
  if (op.is<reshape>()) return of_reshape(v);
  if (op.is<transpose>()) return of_transpose(v);
  if (op.is<reduce>()) return of_sum(v);
  if (op.is<elementwise>()) return of_function(v);
  if (!op.is<convert>()) return std::nullopt;
  const auto found = form_of(v.producer->inputs()[0]);
  if (!found || found->chosen) return of_both(v);
  return holds_positions(v.type().type) ? found : std::nullopt;
}

}  // namespace

std::optional<position_mask> find_position_mask(value v) {
  const auto found = finder().form_of(v);
  if (!found || !found->chosen || v.type().rank() < 2) return std::nullopt;
  std::vector<std::int64_t> factors = found->number.factors;
  const std::int64_t column = factors.back(), row = factors[factors.size() - 2];
  factors.resize(factors.size() - 2);
  if (std::ranges::any_of(factors, [](std::int64_t f) { return f != 0; })) return std::nullopt;
  // column - row + rest <= 0, or row - column + rest <= 0, which is false where column - row <= rest - 1.
  if (column == 1 && row == -1) return position_mask{dim(0) - found->number.rest, found->yes, found->no};
  if (column == -1 && row == 1) return position_mask{found->number.rest - dim(1), found->no, found->yes};
  return std::nullopt;
}

bool counts_columns(value v) {
  const auto found = finder().form_of(v);
  if (!found || found->chosen || v.type().rank() == 0 || !(found->number.rest == dim(0))) return false;
  const auto& factors = found->number.factors;
  return factors.back() == 1 && std::count(factors.begin(), factors.end(), 0) + 1 == std::ssize(factors);
}

}  // namespace kiln
