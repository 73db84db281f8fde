#include "aot/onnx/ops/counting_loop.hpp"

#include <algorithm>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {
namespace {

const ::onnx::NodeProto* producer_of(const ::onnx::GraphProto& body, const std::string& name) {
  auto found =
      std::ranges::find_if(body.node(), [&](const auto& n) { return std::ranges::count(n.output(), name) > 0; });
  return found == body.node().end() ? nullptr : &*found;
}

// Follows operators that keep the value, up to a name that the body does not compute.
std::string source_of(const ::onnx::GraphProto& body, std::string name) {
  for (int step = 0; step < 8; ++step) {
    const ::onnx::NodeProto* n = producer_of(body, name);
    const bool keeps = n && n->input_size() > 0 &&
                       (n->op_type() == "Cast" || n->op_type() == "CastLike" || n->op_type() == "Identity");
    if (!keeps) break;
    name = n->input(0);
  }
  return name;
}

// Returns the value as a dim if the name is one of the graph around the body and known at import.
std::optional<dim> outer_number(node& n, const ::onnx::GraphProto& body, const std::string& name) {
  const std::string source = source_of(body, name);
  const auto is_source = [&](const auto& t) { return t.name() == source; };
  if (producer_of(body, source) || std::ranges::any_of(body.input(), is_source) ||
      std::ranges::any_of(body.initializer(), is_source))
    return std::nullopt;
  value v = n.owner.find(source);
  const auto known = v ? n.b.known(v) : std::nullopt;
  return known && known->size() == 1 ? std::optional(known->front()) : std::nullopt;
}

// Returns the position of the carried value that `name` is the next value of, if it grows by 1.
std::optional<int> counting_position(node& n, const ::onnx::GraphProto& body, const std::string& name) {
  const ::onnx::NodeProto* add = producer_of(body, name);
  if (!add || add->op_type() != "Add" || add->input_size() != 2) return std::nullopt;
  for (int i = 2; i < body.input_size(); ++i) {
    if (i - 1 >= body.output_size() || body.output(i - 1).name() != name) continue;
    for (int side : {0, 1})
      if (add->input(side) == body.input(i).name() && outer_number(n, body, add->input(1 - side)) == dim(1))
        return i - 2;
  }
  return std::nullopt;
}

}  // namespace

std::optional<counting_loop> counting_loop::find(node& n, const ::onnx::GraphProto& body) {
  if (n.has(0) || body.input_size() < 3 || body.output_size() < 2) return std::nullopt;
  const ::onnx::NodeProto* less = producer_of(body, body.output(0).name());
  if (!less || less->op_type() != "Less" || less->input_size() != 2) return std::nullopt;
  const auto position = counting_position(n, body, less->input(0));
  const auto limit = outer_number(n, body, less->input(1));
  if (!position || !limit || !n.has(static_cast<std::size_t>(*position) + 2)) return std::nullopt;
  const auto start = n.b.known(n.in(static_cast<std::size_t>(*position) + 2));
  if (!start || start->size() != 1) return std::nullopt;
  const dim span = *limit - start->front();
  // The least number of trips: the first one is made if the condition at the start holds, whatever the index is.
  std::optional<std::int64_t> least;
  const auto condition = n.has(1) ? n.b.known(n.in(1)) : known_elements{1};
  if (condition && condition->size() == 1 && condition->front().is_static()) {
    if (condition->front() == dim(0)) return std::nullopt;
    least = 1;
  } else if (const auto* e = n.in(1).producer->op().get_if<elementwise>(); e && e->function == scalar_function::less) {
    const auto& compared = n.in(1).producer->inputs();
    if (n.b.known(compared[0]) == start && n.b.known(compared[1]) == known_elements{*limit}) least = 0;
  }
  if (!least) return std::nullopt;
  counting_loop made{n.proto, n.all()};
  made.inputs[0] = n.b.data_of(n.b.facts().max(span, *least));
  made.inputs[1] = {};
  for (auto& a : *made.proto.mutable_attribute())
    if (a.name() == "body") *a.mutable_g() = body, a.mutable_g()->mutable_output(0)->set_name(body.input(1).name());
  return made;
}

}  // namespace kiln::onnx_import
