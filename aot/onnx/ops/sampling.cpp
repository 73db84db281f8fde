// Bernoulli and Multinomial. They compare probabilities with uniform random numbers from our library. The same seed
// gives the same numbers in every run.
#include "aot/onnx/custom.hpp"
#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/tensors.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Returns uniform random numbers in [0, 1), f32 with the dims of `like` (also f32). Reads the node's attribute `seed`.
value uniform_like(node& n, value like) {
  ::onnx::NodeProto proto;
  proto.set_op_type("RandomUniformLike");
  proto.set_name(n.proto.name());
  if (const auto* seed = n.attribute("seed")) *proto.add_attribute() = *seed;
  node random(n.owner, n.b, proto, n.opset, {like});
  return import_custom(random, custom_operators(n.owner.state(), "", "RandomUniformLike")).at(0);
}

std::vector<value> bernoulli(node& n) {
  builder& b = n.b;
  const element_type type =
      n.has_attribute("dtype") ? element_type_of(n.integer("dtype", 1), "attribute 'dtype'") : n.type(0).type;
  value chance = b.to_type(n.in(0), element_type::f32);
  return {b.to_type(b.binary(fn::less, uniform_like(n, chance), chance), type)};
}

// inputs: unnormalized log-probabilities [batch, classes]. A draw is the number of classes whose cumulative probability
// is at most the random number.
std::vector<value> multinomial(node& n) {
  builder& b = n.b;
  if (n.rank(0) != 2) invalid("needs [batch, classes], not " + n.type(0).str());
  const std::int64_t draws = n.integer("sample_size", 1);
  if (draws < 1 || draws > largest_dim) invalid("sample_size is " + std::to_string(draws) + ", not positive");
  const element_type type = element_type_of(n.integer("dtype", 6), "attribute 'dtype'");
  if (type != element_type::i32 && type != element_type::i64)
    invalid("attribute 'dtype' is " + std::string(name(type)) + ", not i32 or i64");
  const dim batch = n.dims(0)[0], classes = n.dims(0)[1];
  value shares = b.add(softmax{1, false}, {b.to_type(n.in(0), element_type::f32)});
  value reached = b.with_dims(b.add(cumulative_sum{1, false, false}, {shares}), {batch, 1, classes});
  value draw = uniform_like(n, b.broadcast_to(b.scalar(element_type::f32, 0), {batch, draws}));
  value passed = b.to_type(b.binary(fn::greater_equal, b.with_dims(draw, {batch, draws, 1}), reached), type);
  // Rounding can make the cumulative probability of the last class less than 1, so limit the index.
  value last = b.to_type(b.dims_tensor({classes - dim(1)}, 0), type);
  return {b.binary(fn::min, b.reduced(reduction_kind::sum, passed, {2}, false), last)};
}

constexpr operator_row rows[] = {{"Bernoulli", bernoulli, 15}, {"Multinomial", multinomial, 7}};

}  // namespace

std::span<const operator_row> sampling_operators() { return rows; }

}  // namespace kiln::onnx_import
