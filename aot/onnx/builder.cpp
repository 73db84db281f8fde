#include "aot/onnx/builder.hpp"

#include <algorithm>
#include <numeric>

#include "ir/error.hpp"

namespace kiln::onnx_import {
namespace {

constexpr std::int64_t fold_limit = 64 * 1024;
constexpr std::int64_t broadcast_fold_limit = 4096;
constexpr std::int64_t packed_fold_limit = 511;

bool is_small(const shape& type, std::int64_t limit) { return type.is_static() && type.element_count() <= limit; }

// Operations whose reference costs about as much as their inputs and outputs have elements. Convolutions and the like are
// left to the passes: their cost is not bounded by their sizes.
bool is_cheap(const operation& op) {
  return op.is<elementwise>() || op.is<convert>() || op.is<reshape>() || op.is<transpose>() || op.is<slice>() || op.is<pad>() || op.is<concat>() ||
         op.is<gather>() || op.is<gather_elements>() || op.is<gather_nd>() || op.is<iota>() || op.is<reduce>() || op.is<cumulative_sum>() || op.is<broadcast>();
}

}  // namespace

value builder::constant(literal data) {
  value made = target_.add_constant(std::move(data));
  made.producer->set_origin(origin_);
  return made;
}

bool builder::is_constant(value v) const {
  return module::constant(v) || (v.producer->op().is<kiln::broadcast>() && is_small(v.type(), fold_limit) && module::constant(v.producer->inputs()[0]));
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

std::optional<value> builder::folded(const operation& op, const std::vector<value>& inputs, const std::vector<shape>& outputs) {
  if (outputs.size() != 1 || !is_small(outputs[0], fold_limit) || !is_cheap(op)) return std::nullopt;
  // Weights of 4 bits stay so (aot/passes/int4_weights.hpp).
  if (op.is<convert>() && storage_bits(inputs[0].type().type) < 8 && !is_small(inputs[0].type(), packed_fold_limit)) return std::nullopt;
  // A broadcast says what it means in fewer bytes; only small index and shape tensors are written out.
  if (op.is<kiln::broadcast>() && (is_float(outputs[0].type) || !is_small(outputs[0], broadcast_fold_limit))) return std::nullopt;
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

value builder::add(operation op, std::vector<value> inputs, std::vector<module*> bodies) {
  if (bodies.empty()) {
    std::vector<shape> shapes;
    for (value v : inputs) shapes.push_back(v.type());
    auto outputs = op.infer(shapes);
    if (const auto* r = op.get_if<reshape>())
      if (const literal* data = module::constant(inputs[0]); data && outputs[0].is_static()) return constant(data->reshaped(r->dims));  // shares the bytes
    if (auto constant = folded(op, inputs, outputs)) return *constant;
    std::vector<known_elements> values;
    for (value v : inputs) {
      auto elements = known(v);
      if (!elements) break;
      values.push_back(std::move(*elements));
    }
    if (outputs.size() == 1 && values.size() == inputs.size())
      if (auto elements = evaluate_known(op, shapes, values, outputs[0])) {
        bool all_numbers = std::ranges::all_of(*elements, [](const dim& d) { return d.is_static(); });
        if (all_numbers) {
          std::vector<std::byte> bytes(outputs[0].bytes());
          for (std::size_t i = 0; i < elements->size(); ++i) {
            auto number = (*elements)[i].value();
            if (is_float(outputs[0].type)) store_element(outputs[0].type, bytes.data(), static_cast<std::int64_t>(i), static_cast<double>(number));
            else store_integer(outputs[0].type, bytes.data(), static_cast<std::int64_t>(i), number);
          }
          return constant(literal(outputs[0], std::move(bytes)));
        }
        value made = target_.add(std::move(op), std::move(inputs));
        made.producer->set_origin(origin_);
        known_[made] = std::move(*elements);
        return made;
      }
  }
  value made = target_.add(std::move(op), std::move(inputs), std::move(bodies));
  made.producer->set_origin(origin_);
  return made;
}

// No operation reads a shape at run time, but a sum of ones over a symbolic dimension is that dimension.
value builder::dims_tensor(const std::vector<dim>& dims, std::size_t rank) {
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
    value ones = target_.add(kiln::broadcast{{d}}, {integers({1})});
    value sum = target_.add(reduce{reduction_kind::sum, {0}, true}, {ones});
    for (value v : {ones, sum}) v.producer->set_origin(origin_);
    known_[sum] = {d};
    parts.push_back(sum);
  }
  if (parts.empty()) return constant(literal::from_int64({}));
  value joined = parts.size() == 1 ? parts[0] : add(concat{0}, parts);
  return rank == 0 ? add(reshape{{}}, {joined}) : joined;
}

value builder::broadcast_to(value x, const std::vector<dim>& dims) { return x.type().dims == dims ? x : add(kiln::broadcast{dims}, {x}); }

std::vector<value> builder::broadcast_together(std::vector<value> values) {
  std::vector<dim> dims;
  for (value v : values) dims = broadcast_dims(dims, v.type().dims);
  for (value& v : values) v = broadcast_to(v, dims);
  return values;
}

value builder::permuted(value x, const std::vector<std::int64_t>& permutation) {
  std::vector<std::int64_t> identity(permutation.size());
  std::iota(identity.begin(), identity.end(), 0);
  return permutation == identity ? x : add(transpose{permutation}, {x});
}

value builder::slice_axis(value x, std::int64_t axis, std::int64_t start, dim length) {
  const auto& dims = x.type().dims;
  if (start == 0 && dims[static_cast<std::size_t>(axis)] == length) return x;
  slice op{std::vector<std::int64_t>(dims.size(), 0), dims, std::vector<std::int64_t>(dims.size(), 1)};
  op.starts[static_cast<std::size_t>(axis)] = start;
  op.lengths[static_cast<std::size_t>(axis)] = length;
  return add(std::move(op), {x});
}

value builder::reduced(reduction_kind kind, value x, std::vector<std::int64_t> axes, bool keep_dims) {
  std::sort(axes.begin(), axes.end());
  return axes.empty() ? x : add(reduce{kind, std::move(axes), keep_dims}, {x});
}

value builder::along_axis(value vector, std::int64_t axis, std::size_t rank) {
  std::vector<dim> dims(rank, 1);
  dims.at(static_cast<std::size_t>(axis)) = vector.type().elements();
  return with_dims(vector, dims);
}

}  // namespace kiln::onnx_import
