#include "aot/onnx/builder.hpp"

#include <algorithm>
#include <cstring>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/dim_arithmetic.hpp"
#include "aot/onnx/range_elements.hpp"
#include "aot/onnx/window_guards.hpp"
#include "ir/error.hpp"

namespace kiln::onnx_import {
namespace {

constexpr std::int64_t fold_limit = 64 * 1024;
constexpr std::int64_t broadcast_fold_limit = 4096;
constexpr std::int64_t packed_fold_limit = 511;

bool is_small(const shape& type, std::int64_t limit) { return type.is_static() && type.element_count() <= limit; }

// Operations whose reference implementation costs about as much as the number of elements of inputs and outputs. The
// passes fold convolutions and the like, because their cost is not bounded by the sizes.
bool is_cheap(const operation& op) {
  return keeps_indices(op) || op.is<reshape>() || op.is<transpose>() || op.is<slice>() || op.is<pad>() ||
         op.is<concat>() || op.is<gather>() || op.is<gather_elements>() || op.is<gather_nd>() || op.is<iota>() ||
         op.is<reduce>() || op.is<cumulative_sum>() || op.is<broadcast>();
}

// Constants of 4 and 8 bits keep their type, because later passes recognize them (aot/passes/quantized_matrix.hpp,
// integer_contractions.hpp, float8_contractions.hpp).
bool stays_quantized(const operation& op, const std::vector<value>& inputs) {
  if (!op.is<convert>()) return false;
  const shape& type = inputs[0].type();
  if (storage_bits(type.type) == 8 && type.type != element_type::boolean) return type.rank() >= 2;
  return storage_bits(type.type) < 8 && !is_small(type, packed_fold_limit);
}

// Returns true if one dim is the other one and something that may be 0, and the smaller one may be 1. With an empty
// past a causal mask of [seq, seq] fits [seq, past+seq], and with a past it does if a step has one row.
bool equal_only_without_past(const dim& a, const dim& b, const dim_facts& facts) try {
  auto holds = [&](const dim& less, const dim& more) {
    const auto least = facts.lower(less), extra = facts.lower(more - less);
    return least && *least <= 1 && extra && *extra == 0;
  };
  return !make_equal(a, b, facts) && (holds(a, b) || holds(b, a));
} catch (const error&) {  // the numbers overflow
  return false;
}

}  // namespace

value builder::constant(literal data) {
  std::optional<scalar_key> key;
  if (data.type().rank() == 0 && data.bytes().size() <= sizeof(std::uint64_t)) {
    key = {data.type().type, 0};
    std::memcpy(&key->second, data.bytes().data(), data.bytes().size());
    if (auto found = scalars_.find(*key); found != scalars_.end()) return found->second;
  }
  value made = target_.add_constant(std::move(data));
  made.producer->set_origin(origin_);
  if (key) scalars_.emplace(*key, made);
  return made;
}

bool builder::is_constant(value v) const {
  return module::constant(v) || (v.producer->op().is<kiln::broadcast>() && is_small(v.type(), fold_limit) &&
                                 module::constant(v.producer->inputs()[0]));
}

std::optional<literal> builder::constant_of(value v) const {
  if (const literal* data = module::constant(v)) return *data;
  if (!v.producer->op().is<kiln::broadcast>() || !is_small(v.type(), fold_limit)) return std::nullopt;
  const literal* source = module::constant(v.producer->inputs()[0]);
  if (!source) return std::nullopt;
  return v.producer->op().evaluate(std::span(source, 1))[0];
}

std::optional<known_elements> builder::known(value v) const {
  if (auto found = known_.find(v); found != known_.end()) return found->second;
  if (!is_small(v.type(), max_known_elements)) return std::nullopt;
  auto data = constant_of(v);
  return data ? elements_of(*data) : std::nullopt;
}

std::optional<value> builder::folded(const operation& op, const std::vector<value>& inputs,
                                     const std::vector<shape>& outputs) {
  if (outputs.size() != 1 || !is_small(outputs[0], fold_limit) || !is_cheap(op)) return std::nullopt;
  if (stays_quantized(op, inputs)) return std::nullopt;
  // A broadcast is a compact representation. Only small index and shape tensors are expanded.
  if (op.is<kiln::broadcast>() && (is_float(outputs[0].type) || !is_small(outputs[0], broadcast_fold_limit)))
    return std::nullopt;
  std::int64_t elements = outputs[0].element_count();
  for (value v : inputs) {
    if (!is_small(v.type(), 16 * fold_limit) || !is_constant(v)) return std::nullopt;
    elements += v.type().element_count();
  }
  if (!budget_.take_folding(elements)) return std::nullopt;
  std::vector<literal> arguments;
  for (value v : inputs) {
    auto data = constant_of(v);
    if (!data) return std::nullopt;
    arguments.push_back(std::move(*data));
  }
  return constant(op.evaluate(arguments)[0]);
}

// Gives dimensions that are assumed to be equal a single expression: replaces `from` by `to` where it is a whole
// dimension.
void builder::relabel(operation& op, std::vector<value>& inputs, const dim& from, const dim& to) {
  for (value& v : inputs) {
    for (std::size_t axis = 0; axis < v.type().rank(); ++axis) {
      if (!(v.type().dims.at(axis) == from)) continue;
      auto dims = v.type().dims;
      dims.at(axis) = to;
      v = add_checked(reshape{dims}, {v});
    }
  }
  attribute_list fields = op.attributes();
  bool changed = false;
  for (auto& field : fields)
    if (auto* dims = std::get_if<std::vector<dim>>(&field.second))
      for (dim& d : *dims)
        if (d == from) d = to, changed = true;
  if (changed) op = make_operation(op.name(), fields);
}

value builder::add(operation op, std::vector<value> inputs, std::vector<module*> bodies) {
  if (!bodies.empty()) {
    value made = target_.add(std::move(op), std::move(inputs), std::move(bodies));
    made.producer->set_origin(origin_);
    return made;
  }
  constexpr int most_guards = 64;
  for (int guards = 0;; ++guards) {
    try {
      return add_checked(op, inputs);
    } catch (const dims_differ& e) {
      if (guards == most_guards) throw;
      take_as_equal(knowledge_, e, origin_);
      const dim& kept = representative(e.a(), e.b());
      relabel(op, inputs, kept == e.a() ? e.b() : e.a(), kept);
    }
  }
}

value builder::add_checked(operation op, std::vector<value> inputs) {
  std::vector<shape> shapes;
  for (value v : inputs) shapes.push_back(v.type());
  auto outputs = op.infer(shapes);
  need_windows_to_fit(*this, op, shapes);
  if (const auto* r = op.get_if<reshape>())
    if (const literal* data = module::constant(inputs[0]); data && outputs[0].is_static())
      return constant(data->reshaped(r->dims));  // shares the bytes
  if (auto constant = folded(op, inputs, outputs)) return *constant;
  std::optional<known_elements> elements =
      outputs.size() == 1 && !stays_quantized(op, inputs) ? known_result(op, inputs, shapes, outputs[0]) : std::nullopt;
  std::optional<known_fractions> fractions =
      !elements && outputs.size() == 1 ? fraction_result(op, inputs, shapes, outputs[0]) : std::nullopt;
  if (fractions) elements = integers_of(*fractions);
  if (elements && std::ranges::all_of(*elements, [](const dim& d) { return d.is_static(); })) {
    std::vector<std::byte> bytes(outputs[0].bytes());
    for (std::size_t i = 0; i < elements->size(); ++i) {
      auto number = (*elements)[i].value();
      if (is_float(outputs[0].type))
        store_element(outputs[0].type, bytes.data(), static_cast<std::int64_t>(i), static_cast<double>(number));
      else store_integer(outputs[0].type, bytes.data(), static_cast<std::int64_t>(i), number);
    }
    return constant(literal(outputs[0], std::move(bytes)));
  }
  std::optional<dim> each =
      !elements && outputs.size() == 1 ? uniform_result(op, inputs, shapes, outputs[0]) : std::nullopt;
  value made = target_.add(std::move(op), std::move(inputs));
  made.producer->set_origin(origin_);
  if (elements) known_[made] = std::move(*elements);
  else if (each && is_small(outputs[0], max_known_elements))
    known_[made] = known_elements(static_cast<std::size_t>(outputs[0].element_count()), *each);
  else if (each) uniform_[made] = *each;
  if (fractions && !elements) fractions_[made] = std::move(*fractions);
  return made;
}

std::optional<dim> builder::uniform(value v) const {
  if (auto found = uniform_.find(v); found != uniform_.end()) return found->second;
  auto elements = known(v);
  if (!elements || elements->empty()) return std::nullopt;
  bool same = std::ranges::all_of(*elements, [&](const dim& d) { return d == elements->front(); });
  return same ? std::optional(elements->front()) : std::nullopt;
}

namespace {

// Returns bounds that hold for all elements of an integer tensor, if it is a range of numbers or all elements are
// equal. The depth is limited because subgraphs may be shared.
std::optional<std::pair<dim, dim>> bounds_of(const builder& b, value v, int depth = 6) {
  if (depth == 0) return std::nullopt;
  if (auto each = b.uniform(v)) return std::pair(*each, *each);
  const operation& op = v.producer->op();
  const auto& inputs = v.producer->inputs();
  if (const auto* range = op.get_if<iota>())
    return std::pair(dim(0), range->dims.at(static_cast<std::size_t>(range->axis)) - dim(1));
  if (op.is<kiln::broadcast>() || op.is<reshape>() || op.is<transpose>() || op.is<slice>() || op.is<gather>() ||
      (op.is<convert>() && is_integer(v.type().type) && is_integer(inputs[0].type().type)))
    return bounds_of(b, inputs[0], depth - 1);
  const auto* e = op.get_if<elementwise>();
  if (!e || inputs.size() != 2) return std::nullopt;
  auto left = bounds_of(b, inputs[0], depth - 1), right = bounds_of(b, inputs[1], depth - 1);
  if (!left || !right) return std::nullopt;
  if (e->function == scalar_function::add) return std::pair(left->first + right->first, left->second + right->second);
  if (e->function != scalar_function::mul) return std::nullopt;
  // After the swap, `right` has the same value for all elements.
  if (right->first == right->second) std::swap(left, right);
  const dim factor = left->first;
  if (!(factor == left->second) || !b.facts().at_least(factor, 0)) return std::nullopt;
  return std::pair(factor * right->first, factor * right->second);
}

// Returns the result of a comparison of two tensors if their bounds make it the same for all elements.
std::optional<dim> decided_comparison(const builder& b, const operation& op, const std::vector<value>& inputs) {
  const auto* e = op.get_if<elementwise>();
  if (!e || inputs.size() != 2 || !is_integer(inputs[0].type().type)) return std::nullopt;
  const bool or_equal = e->function == scalar_function::less_equal || e->function == scalar_function::greater_equal;
  const bool less = e->function == scalar_function::less || e->function == scalar_function::less_equal;
  if (!less && e->function != scalar_function::greater && e->function != scalar_function::greater_equal)
    return std::nullopt;
  auto low = bounds_of(b, inputs[less ? 0 : 1]), high = bounds_of(b, inputs[less ? 1 : 0]);
  if (!low || !high) return std::nullopt;
  // low < high, or low <= high
  const dim gap = or_equal ? 0 : 1;
  if (b.facts().at_least(high->first, low->second + gap)) return dim(1);
  if (b.facts().at_least(low->first + gap, high->second + dim(1))) return dim(0);
  return std::nullopt;
}

}  // namespace

std::optional<dim> builder::uniform_result(const operation& op, const std::vector<value>& inputs,
                                           const std::vector<shape>& shapes, const shape& output) const try {
  bool moves_first =
      op.is<kiln::broadcast>() || op.is<reshape>() || op.is<transpose>() || op.is<slice>() || op.is<gather>();
  if (auto decided = decided_comparison(*this, op, inputs)) return decided;
  if (inputs.empty() || !(moves_first || op.is<elementwise>() || op.is<convert>() || op.is<reduce>()))
    return std::nullopt;
  std::vector<known_elements> values;
  std::vector<shape> scalars;
  for (std::size_t i = 0; i < (moves_first ? 1 : inputs.size()); ++i) {
    auto each = uniform(inputs[i]);
    if (!each) return std::nullopt;
    values.push_back({*each});
    scalars.push_back({shapes[i].type, {}});
  }
  if (moves_first) return values[0][0];
  if (const auto* r = op.get_if<reduce>()) {
    dim count = 1;
    for (std::int64_t axis : r->axes) count = count * shapes[0].dims.at(static_cast<std::size_t>(axis));
    if (r->kind == reduction_kind::sum) return values[0][0] * count;
    bool keeps = r->kind == reduction_kind::max || r->kind == reduction_kind::min;
    return keeps && facts().at_least(count, 1) ? std::optional(values[0][0]) : std::nullopt;
  }
  auto result = evaluate_known(op, scalars, values, {output.type, {}}, facts());
  return result ? std::optional(result->front()) : std::nullopt;
} catch (const error&) {  // the numbers overflow
  return std::nullopt;
}

std::optional<known_elements> builder::known_result(const operation& op, const std::vector<value>& inputs,
                                                    const std::vector<shape>& shapes, const shape& output) const {
  if (op.is<gather>() && !known(inputs[0]) && known(inputs[1]))
    return elements_of_range(*this, inputs[0], *known(inputs[1]));
  std::vector<known_elements> values;
  for (value v : inputs) {
    auto elements = known(v);
    if (!elements) return std::nullopt;
    values.push_back(std::move(*elements));
  }
  return evaluate_known(op, shapes, values, output, facts());
}

std::optional<known_elements> builder::know_again(value v) {
  std::vector<shape> shapes;
  for (value input : v.producer->inputs()) shapes.push_back(input.type());
  auto elements = known_result(v.producer->op(), v.producer->inputs(), shapes, v.type());
  if (elements) known_[v] = *elements;
  return elements;
}

std::optional<known_fractions> builder::fractions_of_value(value v) const {
  if (auto found = fractions_.find(v); found != fractions_.end()) return found->second;
  if (auto elements = known(v)) return fractions_of(*elements);
  if (!is_small(v.type(), max_known_elements)) return std::nullopt;
  auto data = constant_of(v);
  return data ? fractions_of(*data) : std::nullopt;
}

// Only computations with floats can have fractions.
std::optional<known_fractions> builder::fraction_result(const operation& op, const std::vector<value>& inputs,
                                                        const std::vector<shape>& shapes, const shape& output) const {
  if (inputs.empty() || !is_float(shapes[0].type) || !is_small(output, max_known_elements)) return std::nullopt;
  std::vector<known_fractions> values;
  for (value v : inputs) {
    auto fractions = fractions_of_value(v);
    if (!fractions) return std::nullopt;
    values.push_back(std::move(*fractions));
  }
  return evaluate_fractions(op, shapes, values, output, facts());
}

// There is no operation that reads a shape at run time, but a sum of ones over a symbolic dimension equals that
// dimension.
value builder::dims_tensor(const std::vector<dim>& dims, std::size_t rank) {
  auto sum_of_ones = [this](const dim& d) {
    value ones = target_.add(kiln::broadcast{{d}}, {integers({1})});
    value sum = target_.add(reduce{reduction_kind::sum, {0}, true}, {ones});
    for (value v : {ones, sum}) v.producer->set_origin(origin_);
    known_[sum] = {d};
    return sum;
  };
  const dim_emitter arithmetic{
      [this](operation op, std::vector<value> inputs) { return add(std::move(op), std::move(inputs)); },
      [this](std::int64_t number) { return integers({number}); },
      [&](const std::string& symbol) {
        auto count = counts_.find(symbol);
        return count == counts_.end() ? sum_of_ones(dim::symbol(symbol)) : count->second;
      }};
  std::vector<value> parts;
  for (const dim& d : dims) {
    if (d.is_static()) {
      parts.push_back(integers({d.value()}));
      continue;
    }
    if (auto count = counts_.find(d.str()); count != counts_.end()) {
      parts.push_back(count->second);
      continue;
    }
    parts.push_back(is_bounded(d) ? value_of_dim(d, arithmetic) : sum_of_ones(d));
  }
  if (parts.empty()) return constant(literal::from_int64({}));
  value joined = parts.size() == 1 ? parts[0] : add(concat{0}, parts);
  return rank == 0 ? add(reshape{{}}, {joined}) : joined;
}

void builder::need_equal(const dim& a, const dim& b, const std::string& what) {
  if (a == b) return;
  if ((a - b).is_static()) throw error(error_kind::invalid_model, what);
  take_as_equal(knowledge_, dims_differ(what, a, b), origin_);
}

std::optional<dim> builder::larger_if_one(const dim& a, const dim& b) {
  if (a == dim(1) || b == dim(1) || is_bounded(a) || is_bounded(b)) return std::nullopt;
  const auto symbols = (a + b).symbols();
  const bool told =
      std::ranges::any_of(symbols, [&](const std::string& s) { return knowledge_.may_be_one.contains(s); });
  if (!told && !equal_only_without_past(a, b, facts()) &&
      (make_equal(a, b, facts()) || !equal_only_at_one(a, b, facts())))
    return std::nullopt;
  // Checked as it is written: facts say that dims are at least 1, but a past may be empty.
  const dim least = dim::min(a, b), difference = dim::max(a, b) - least, most = facts().max(a, b);
  need_equal((least - dim(1)) * difference, 0, "dimensions " + a.str() + " and " + b.str() + " do not broadcast");
  for (const dim* each : {&a, &b}) stretched_.emplace_back(*each, most);
  return most;
}

std::vector<dim> builder::broadcast_shape(const std::vector<dim>& a, const std::vector<dim>& b) {
  const auto &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  std::vector<dim> result = longer;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    dim& out = result[longer.size() - shorter.size() + i];
    if (out == shorter[i] || shorter[i] == dim(1)) continue;
    if (auto larger = larger_if_one(out, shorter[i])) {
      out = *larger;
    } else if (!(out == dim(1))) {
      need_equal(out, shorter[i], "dimensions " + out.str() + " and " + shorter[i].str() + " do not broadcast");
      out = representative(out, shorter[i]);
    } else {
      out = shorter[i];
    }
  }
  return result;
}

value builder::data_of(const dim& d) {
  if (facts().at_least(d, 0)) return dims_tensor({d}, 0);
  dim_terms positive, negative;  // a sum of ones cannot be negative
  for (const auto& [atoms, c] : d.terms()) (c > 0 ? positive : negative)[atoms] = c;
  const dim more = dim::from(positive), less = dim(0) - dim::from(negative);
  // A part can be negative itself, as min(1, n - 1) for n = 0.
  const bool counted = facts().at_least(more, 0) && facts().at_least(less, 0);
  if (const auto least = facts().lower(d); least && !counted)
    return binary(scalar_function::add, dims_tensor({d - dim(*least)}, 0), static_cast<double>(*least));
  return binary(scalar_function::sub, dims_tensor({more}, 0), dims_tensor({less}, 0));
}

value builder::broadcast_to(value x, const std::vector<dim>& dims) {
  if (x.type().dims == dims) return x;
  // Every dim is 1 or equal to the result's. The index along it is 0 or that of the result.
  for (std::size_t i = 0, rank = x.type().rank(); !stretched_.empty() && rank <= dims.size() && i < rank; ++i) {
    const dim from = x.type().dims.at(i), to = dims.at(dims.size() - rank + i);
    if (std::ranges::find(stretched_, std::pair(from, to)) == stretched_.end()) continue;
    value index = binary(scalar_function::min, iota_like(element_type::i64, {to}, 0), data_of(from - dim(1)));
    x = add(gather{static_cast<std::int64_t>(i)}, {x, index});
  }
  if (x.type().dims == dims) return x;
  if (x.type().rank() > 0 || !module::constant(x)) return add(kiln::broadcast{dims}, {x});
  std::vector<value>& made = spread_scalars_[x];
  auto found = std::ranges::find_if(made, [&](value v) { return v.type().dims == dims; });
  return found != made.end() ? *found : made.emplace_back(add(kiln::broadcast{dims}, {x}));
}

std::vector<value> builder::broadcast_together(std::vector<value> values) {
  std::vector<dim> dims;
  for (value v : values) dims = broadcast_shape(dims, v.type().dims);
  for (value& v : values) v = broadcast_to(v, dims);
  return values;
}

}  // namespace kiln::onnx_import
