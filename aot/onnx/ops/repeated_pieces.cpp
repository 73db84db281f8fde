#include "aot/onnx/ops/repeated_pieces.hpp"

#include <algorithm>
#include <ranges>
#include <set>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/sequences.hpp"
#include "aot/onnx/sizes_of_data.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// The node of the body that computes the value, if it is an `op` with one output; null otherwise.
const ::onnx::NodeProto* producer(const ::onnx::GraphProto& body, const std::string& name, std::string_view op) {
  for (const auto& n : body.node())
    if (n.op_type() == op && n.domain().empty() && n.output_size() == 1 && n.output(0) == name) return &n;
  return nullptr;
}

// The numbers of a Constant of the body.
std::optional<std::vector<std::int64_t>> numbers_of(scope& owner, const ::onnx::GraphProto& body,
                                                    const std::string& name) {
  const auto* made = producer(body, name, "Constant");
  if (!made) return std::nullopt;
  for (const auto& a : made->attribute())
    if (a.name() == "value" && a.has_t()) {
      ::onnx::TensorProto copy = a.t();
      const literal data = owner.tensor(copy, "constant '" + name + "'");
      if (!is_integer(data.type().type)) return std::nullopt;
      std::vector<std::int64_t> numbers;
      for (std::int64_t i = 0; i < data.type().element_count(); ++i) numbers.push_back(data.at_int(i));
      return numbers;
    }
  return std::nullopt;
}

// For each element of a shape that a Concat of the body makes, whether it is computed. A computed part has one element.
std::vector<bool> computed_elements(scope& owner, const ::onnx::GraphProto& body, const std::string& shape) {
  std::string name = shape;
  // torch replaces -1 by 1: Where(shape == -1, 1, shape).
  if (const auto* where = producer(body, name, "Where")) name = where->input(2);
  const auto* joined = producer(body, name, "Concat");
  std::vector<bool> computed;
  if (!joined) return computed;
  for (const auto& part : joined->input()) {
    const auto numbers = numbers_of(owner, body, part);
    computed.insert(computed.end(), numbers ? numbers->size() : 1, !numbers);
  }
  return computed;
}

}  // namespace

std::optional<repeated_pieces> repeated_pieces::find(node& n, const ::onnx::GraphProto& body) {
  repeated_pieces made;
  made.carried_ = n.inputs() - 2;
  std::size_t sequences = 0;
  for (std::size_t i = 0; i < made.carried_; ++i) {
    const compound* c = n.has(i + 2) ? find_compound(n.owner.state(), n.in(i + 2)) : nullptr;
    if (!c) continue;
    if (c->is_optional || c->stacked || c->joined || !c->elements.empty()) return std::nullopt;
    made.sequence_ = i;
    ++sequences;
  }
  if (sequences != 1) return std::nullopt;
  const int at = static_cast<int>(made.sequence_);
  const std::string before = body.input(at + 2).name(), after = body.output(at + 1).name();
  const auto* insert = producer(body, after, "SequenceInsert");
  if (!insert || insert->input(0) != before || (insert->input_size() > 2 && !insert->input(2).empty()))
    return std::nullopt;
  std::string piece = insert->input(1);
  if (const auto* reshape = producer(body, piece, "Reshape")) {
    const auto dims = numbers_of(n.owner, body, reshape->input(1));
    if (!dims || std::ranges::count(*dims, -1) != 1) return std::nullopt;
    made.reshape_ = *reshape;
    made.reshaped_ = *dims;
    piece = reshape->input(0);
  }
  const auto* expand = producer(body, piece, "Expand");
  if (!expand) return std::nullopt;
  made.computed_ = computed_elements(n.owner, body, expand->input(1));
  if (std::ranges::count(made.computed_, true) == 0) return std::nullopt;

  made.proto_ = n.proto;
  for (auto& a : *made.proto_.mutable_attribute()) {
    if (a.name() != "body") continue;
    ::onnx::GraphProto& graph = *a.mutable_g();
    graph = body;
    const std::set<std::string> left_out{after, insert->input(1), piece};
    for (int i = graph.node_size(); i-- > 0;)
      if (graph.node(i).output_size() == 1 && left_out.contains(graph.node(i).output(0)))
        graph.mutable_node()->DeleteSubrange(i, 1);
    graph.mutable_input()->DeleteSubrange(at + 2, 1);
    graph.mutable_output()->DeleteSubrange(at + 1, 1);
    graph.add_output()->set_name(expand->input(0));
    graph.add_output()->set_name(expand->input(1));
  }
  for (std::size_t i = 0; i < n.inputs(); ++i)
    if (i != made.sequence_ + 2) made.inputs_.push_back(n.all()[i]);
  return made;
}

std::vector<value> repeated_pieces::results(node& n, const std::vector<value>& made) const {
  builder& b = n.b;
  value pieces = made.at(made.size() - 2), shapes = made.back();  // [T, dims of a piece], [T, rank]
  const auto dims = pieces.type().dims;
  const std::size_t rank = dims.size() - 1;
  if (computed_.size() != rank || !(shapes.type().dims.at(1) == dim(static_cast<std::int64_t>(rank))))
    refuse("what it appends is expanded to another rank");
  // The axis along which a piece is repeated is one of size 1 whose new size the body computes.
  std::vector<std::int64_t> axes;
  for (std::size_t k = 0; k < rank; ++k)
    if (computed_[k] && dims[k + 1] == dim(1)) axes.push_back(static_cast<std::int64_t>(k));
  if (axes.size() != 1) refuse("what it appends is not repeated along one axis");
  const std::int64_t axis = axes[0];
  const dim trips = dims[0];
  value counts = b.with_dims(b.slice_axis(b.to_type(shapes, element_type::i64), 1, axis, 1), {trips});
  value total = b.reduced(reduction_kind::sum, counts, {0}, true);
  const auto size = size_of_data(n, total);
  if (!size) throw value_needed("what it appends has a size that depends on data");
  // Row p of the result is of the first trip whose rows end after p.
  value ends = b.with_dims(b.add(cumulative_sum{0}, {counts}), {1, trips});
  value place = b.iota_like(element_type::i64, {*size, 1}, 0);
  value ended = b.to_type(b.binary(fn::less_equal, ends, place), element_type::i64);
  value trip = b.reduced(reduction_kind::sum, ended, {1}, false);
  auto flat = dims;
  flat.erase(flat.begin() + 1 + axis);
  value rows = b.add(gather{0}, {b.with_dims(pieces, flat), trip});
  std::vector<std::int64_t> order;
  for (std::int64_t i = 1; i < static_cast<std::int64_t>(rank); ++i) order.push_back(i);
  order.insert(order.begin() + axis, 0);
  value whole = b.permuted(rows, order);
  std::int64_t along = axis;
  if (reshape_) {
    ::onnx::NodeProto proto = *reshape_;
    node call(n.owner, b, proto, n.opset, {whole, b.integers(reshaped_)});
    whole = find_operator("", "Reshape")->import(call).at(0);
    along = std::ranges::find(reshaped_, -1) - reshaped_.begin();
  }
  std::vector<value> results(made.begin(), made.end() - 2);
  const compound parts{.joined = whole, .along = along};
  results.insert(results.begin() + static_cast<std::ptrdiff_t>(sequence_), add_compound(n.owner.state(), b, parts));
  return results;
}

}  // namespace kiln::onnx_import
