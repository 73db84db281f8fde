// Operators of onnxruntime's domain that are a standard operator under another name, or its channels-last form.
#include <algorithm>
#include <numeric>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {

using fn = scalar_function;

value channels_second(builder& b, value x) {
  std::vector<std::int64_t> order(x.type().rank());
  if (order.size() < 3) invalid("an image needs spatial axes, the input is " + x.type().str());
  std::iota(order.begin() + 1, order.end(), 0);
  order[1] = static_cast<std::int64_t>(order.size()) - 1;
  for (std::size_t i = 2; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i) - 1;
  return b.permuted(x, order);
}

value channels_last(builder& b, value x) {
  std::vector<std::int64_t> order(x.type().rank());
  std::iota(order.begin(), order.end(), 1);
  order.front() = 0;
  order.back() = 1;
  return b.permuted(x, order);
}

namespace {

// Imports the node as a standard operator of the given opset, with the given inputs.
std::vector<value> as_standard(node& n, std::string_view name, std::int64_t opset, std::vector<value> inputs) {
  node call(n.owner, n.b, n.proto, opset, std::move(inputs));
  return find_operator("", name)->import(call);
}

// A contrib operator that equals a standard operator: same attributes, inputs and outputs as in the given opset.
struct synonym {
  std::string_view name, standard;
  std::int64_t opset;
};
constexpr synonym synonyms[] = {
    {"Trilu", "Trilu", 14},       {"GridSample", "GridSample", 16},   {"Pad", "Pad", 11},
    {"GatherND", "GatherND", 12}, {"QLinearConv", "QLinearConv", 10}, {"NhwcMaxPool", "MaxPool", 12},
    {"NhwcConv", "Conv", 11},     {"NhwcFusedConv", "Conv", 11},
};

const synonym& synonym_of(node& n) {
  for (const synonym& s : synonyms)
    if (s.name == n.proto.op_type()) return s;
  invalid("has no standard operator");
}

std::vector<value> renamed(node& n) {
  const synonym& s = synonym_of(n);
  return as_standard(n, s.standard, s.opset, n.all());
}

// Imports a channels-last form of a standard operator. Input 0 and the result are images with channels last; weights
// have the standard layout.
std::vector<value> of_channels_last(node& n) {
  auto inputs = n.all();
  inputs[0] = channels_second(n.b, n.in(0));
  const synonym& s = synonym_of(n);
  return {channels_last(n.b, as_standard(n, s.standard, s.opset, std::move(inputs))[0])};
}

// Returns true if weights [M, axes..., channels / group] or, with the channels second, [M, channels / group, axes...]
// fit the image and the attribute kernel_shape.
bool weights_fit(node& n, bool last) {
  const std::vector<dim>& weights = n.dims(1);
  if (weights.size() < 3 || n.rank(0) != weights.size()) return false;
  const auto spatial = n.integers("kernel_shape");
  const auto begin = weights.begin() + (last ? 1 : 2);
  if (spatial && !std::equal(begin, begin + static_cast<std::ptrdiff_t>(weights.size()) - 2, spatial->begin(),
                             spatial->end(), [](const dim& size, std::int64_t wanted) { return size == dim(wanted); }))
    return false;
  const dim& channels = n.dims(0).back();
  return !channels.is_static() || (last ? weights.back() : weights[1]) * dim(n.integer("group", 1)) == channels;
}

// onnxruntime's optimizer for Stable Diffusion and its kernel have the channels of the weights last; its document has
// them second. The shapes decide.
std::vector<value> conv_channels_last(node& n) {
  if (!weights_fit(n, true)) return of_channels_last(n);
  auto inputs = n.all();
  inputs[0] = channels_second(n.b, n.in(0));
  inputs[1] = channels_second(n.b, n.in(1));
  return {channels_last(n.b, as_standard(n, "Conv", 11, std::move(inputs))[0])};
}

std::vector<value> fused_conv_channels_last(node& n) {
  value result = of_channels_last(n)[0];
  if (n.has(3)) result = n.b.binary(fn::add, result, n.in(3));
  return {activated(n, result)};
}

std::vector<value> qlinear_conv(node& n) { return n.integer("channels_last", 0) ? of_channels_last(n) : renamed(n); }

// inputs: X, weights, pads, bias. The pads are an attribute of the standard operator.
std::vector<value> conv_transpose_with_pads(node& n) {
  auto inputs = n.all();
  ::onnx::NodeProto proto = n.proto;
  if (n.has(2)) {
    auto& pads = *proto.add_attribute();
    pads.set_name("pads");
    pads.set_type(::onnx::AttributeProto::INTS);
    for (std::int64_t each : n.numbers(2, "pads")) pads.add_ints(each);
  }
  if (inputs.size() > 2) inputs.erase(inputs.begin() + 2);
  node call(n.owner, n.b, proto, 11, std::move(inputs));
  return find_operator("", "ConvTranspose")->import(call);
}

// inputs: X, the axis at which a dimension of 1 is inserted.
std::vector<value> expand_dims(node& n) {
  auto given = n.numbers(1, "axis");
  if (given.size() != 1) invalid("axis must have one element");
  auto dims = n.dims(0);
  dims.insert(dims.begin() + normalize_axis(given[0], dims.size() + 1), 1);
  return {n.b.with_dims(n.in(0), dims)};
}

// inputs: start, limit, delta (1 if it is missing).
std::vector<value> range(node& n) {
  std::vector<value> inputs{n.in(0), n.in(1), n.has(2) ? n.in(2) : n.b.scalar(n.type(0).type, 1)};
  for (value& v : inputs) v = n.b.with_dims(v, {});
  return as_standard(n, "Range", 11, inputs);
}

// Multiplies i16 by i16 and accumulates in i32.
std::vector<value> matmul_integer_16(node& n) {
  auto wide = [&](std::size_t i) { return n.b.to_type(n.in(i), element_type::i32); };
  return {matmul(n.b, wide(0), wide(1), element_type::i32)};
}

// inputs: A, its zero point, B, its zero point. The product is i32.
std::vector<value> mul_integer(node& n) {
  auto wide = [&](std::size_t i) {
    value x = n.b.to_type(n.in(i), element_type::i32);
    return n.has(i + 1) ? n.b.binary(fn::sub, x, n.b.to_type(n.in(i + 1), element_type::i32)) : x;
  };
  return {n.b.binary(fn::mul, wide(0), wide(2))};
}

// inputs: weights, indices, and what only training reads.
std::vector<value> torch_embedding(node& n) { return as_standard(n, "Gather", 11, {n.in(0), n.in(1)}); }

// The distinct elements of X in the order in which they occur, where each element of X is among them, and how often.
std::vector<value> unique_in_order(node& n) {
  ::onnx::NodeProto proto = n.proto;
  proto.add_output("counts");
  auto& sorted = *proto.add_attribute();
  sorted.set_name("sorted");
  sorted.set_type(::onnx::AttributeProto::INT);
  sorted.set_i(0);
  node call(n.owner, n.b, proto, 11, {n.in(0)});
  const auto results = find_operator("", "Unique")->import(call);  // values, first places, places, counts
  return {results.at(0), results.at(2), results.at(3)};
}

constexpr operator_row rows[] = {
    {"MulInteger", mul_integer, 1, "", microsoft_domain},
    {"TorchEmbedding", torch_embedding, 1, "", microsoft_domain},
    {"Unique", unique_in_order, 1, "", microsoft_domain},
    {"Trilu", renamed, 1, "", microsoft_domain},
    {"GridSample", renamed, 1, "2 spatial axes", microsoft_domain},
    {"Pad", renamed, 1, "", microsoft_domain},
    {"GatherND", renamed, 1, "", microsoft_domain},
    {"QLinearConv", qlinear_conv, 1, "8-bit types", microsoft_domain},
    {"NhwcMaxPool", of_channels_last, 1, "no indices", microsoft_domain},
    {"NhwcConv", conv_channels_last, 1, "1 to 3 spatial axes", microsoft_domain},
    {"NhwcFusedConv", fused_conv_channels_last, 1, "1 to 3 spatial axes", microsoft_domain},
    {"ConvTransposeWithDynamicPads", conv_transpose_with_pads, 1, "pads known at import", microsoft_domain},
    {"ExpandDims", expand_dims, 1, "axis known at import", microsoft_domain},
    {"Range", range, 1, "bounds known at import", microsoft_domain},
    {"MatMulInteger16", matmul_integer_16, 1, "", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_synonym_operators() { return rows; }

}  // namespace kiln::onnx_import
