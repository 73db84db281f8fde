// Scan, as a loop over the elements of its scan inputs.
#include <optional>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/body_module.hpp"
#include "aot/onnx/ops/loop.hpp"

namespace kiln::onnx_import {
namespace {

// Which axis of each scan input is scanned, and whether it is scanned backwards. States come first among the inputs.
struct scan_axes {
  std::size_t states;
  std::vector<std::int64_t> axes, directions;
};

// Imports a Scan as the operator Loop, whose body gathers the elements of this iteration.
std::vector<value> scan_as_loop(node& n, const scan_axes& scan, const dim& length) {
  builder& b = n.b;
  auto& graph = n.graph("body");
  int other = 0;  // Scans of a model often have bodies of one name
  while (n.owner.find("scan." + std::to_string(other) + ".last0")) ++other;
  const std::string prefix = "scan." + std::to_string(other) + ".";
  auto name = [&](const char* what, std::size_t i) { return prefix + what + std::to_string(i); };
  ::onnx::NodeProto proto = n.proto;
  proto.set_op_type("Loop");
  proto.clear_attribute();
  auto& attribute = *proto.add_attribute();
  attribute.set_name("body"), attribute.set_type(::onnx::AttributeProto::GRAPH);
  ::onnx::GraphProto& body = *attribute.mutable_g();
  body = graph;
  body.clear_input(), body.clear_output(), body.clear_node();
  body.add_input()->set_name(name("iteration", 0)), body.add_input()->set_name(name("condition", 0));
  body.add_output()->set_name(name("condition", 0));
  for (std::size_t i = 0; i < scan.states; ++i) *body.add_input() = graph.input(static_cast<int>(i));
  for (const auto& each : graph.output()) *body.add_output() = each;
  n.owner.define(name("last", 0), b.data_of(length - dim(1)));
  auto add = [&](const char* operation, const std::vector<std::string>& inputs, const std::string& output) -> auto& {
    auto& made = *body.add_node();
    made.set_op_type(operation);
    for (const std::string& each : inputs) made.add_input(each);
    made.add_output(output);
    return made;
  };
  add("Sub", {name("last", 0), name("iteration", 0)}, name("backward", 0));
  for (std::size_t i = 0; i < scan.axes.size(); ++i) {
    n.owner.define(name("scanned", i), n.in(scan.states + i));
    auto& axis = *add("Gather", {name("scanned", i), name(scan.directions[i] ? "backward" : "iteration", 0)},
                      graph.input(static_cast<int>(scan.states + i)).name())
                      .add_attribute();
    axis.set_name("axis"), axis.set_type(::onnx::AttributeProto::INT), axis.set_i(scan.axes[i]);
  }
  body.mutable_node()->MergeFrom(graph.node());
  std::vector<value> inputs{b.data_of(length), b.scalar(element_type::boolean, 1)};
  for (std::size_t i = 0; i < scan.states; ++i) inputs.push_back(n.in(i));
  node loop(n.owner, b, proto, n.opset, inputs);
  return import_loop(loop);
}

// Imports Scan as a loop.
std::vector<value> import_scan(node& n) {
  auto& graph = n.graph("body");
  builder& b = n.b;
  std::int64_t scanned = n.integer("num_scan_inputs", 0);
  if (scanned < 1 || static_cast<std::size_t>(scanned) > n.inputs())
    invalid("num_scan_inputs is " + std::to_string(scanned) + " for " + std::to_string(n.inputs()) + " inputs");
  auto scans = static_cast<std::size_t>(scanned), states = n.inputs() - scans;
  if (static_cast<std::size_t>(graph.input_size()) != n.inputs())
    invalid("its body has " + std::to_string(graph.input_size()) + " inputs, the node " + std::to_string(n.inputs()));
  if (static_cast<std::size_t>(graph.output_size()) < states || graph.output_size() == 0)
    invalid("its body has too few outputs");
  std::size_t collected = static_cast<std::size_t>(graph.output_size()) - states;
  auto list = [&](const char* name, std::size_t count) {
    auto given = n.integers(name).value_or(std::vector<std::int64_t>(count, 0));
    if (given.size() != count) invalid(std::string(name) + " needs " + std::to_string(count) + " entries");
    return given;
  };
  scan_axes scan{states, list("scan_input_axes", scans), list("scan_input_directions", scans)};
  auto out_axes = list("scan_output_axes", collected), out_directions = list("scan_output_directions", collected);
  std::optional<dim> length;
  for (std::size_t i = 0; i < scans; ++i) {
    scan.axes[i] = normalize_axis(scan.axes[i], n.rank(states + i));
    const dim& size = n.dims(states + i)[static_cast<std::size_t>(scan.axes[i])];
    if (length) b.need_equal(*length, size, "its scan inputs have different lengths");
    else length = size;
  }
  auto results = scan_as_loop(n, scan, *length);
  // The scan outputs of all iterations are stacked along axis 0, in order.
  for (std::size_t i = 0; i < collected; ++i) {
    value& v = results.at(states + i);
    const std::size_t rank = v.type().rank();
    if (out_directions[i]) v = b.slice_from(v, 0, *length - dim(1), *length, -1);
    std::vector<std::int64_t> order;
    for (std::size_t k = 1; k < rank; ++k) order.push_back(static_cast<std::int64_t>(k));
    order.insert(order.begin() + normalize_axis(out_axes[i], rank), 0);
    v = b.permuted(v, order);
  }
  return results;
}

// Scan of opset 8: every input after the sequence lengths has a leading batch axis, and each batch entry is scanned
// separately.
std::vector<value> import_batched_scan(node& n) {
  builder& b = n.b;
  if (n.has(0)) refuse("sequence lengths (input 0) are not supported");
  if (n.inputs() < 2 || n.rank(1) == 0 || !n.dims(1)[0].is_static())
    refuse("scans of a batch whose size is not known at import");
  const std::int64_t batch = n.dims(1)[0].value();
  std::vector<std::vector<value>> results(n.outputs());
  for (std::int64_t entry = 0; entry < batch; ++entry) {
    n.owner.state().budget.take_copy(n.proto.ByteSizeLong());
    ::onnx::NodeProto copy = n.proto;
    for (auto& a : *copy.mutable_attribute())
      if (a.name() == "directions") a.set_name("scan_input_directions");
    std::vector<value> inputs;
    for (std::size_t i = 1; i < n.inputs(); ++i) {
      if (n.rank(i) == 0 || !(n.dims(i)[0] == dim(batch))) invalid("its inputs have different batches");
      const auto dims = n.dims(i);
      inputs.push_back(b.with_dims(b.slice_axis(n.in(i), 0, entry, 1), {dims.begin() + 1, dims.end()}));
    }
    node single(n.owner, b, copy, 9, std::move(inputs));
    auto made = import_scan(single);
    for (std::size_t i = 0; i < results.size(); ++i) {
      auto dims = made.at(i).type().dims;
      dims.insert(dims.begin(), 1);
      results[i].push_back(b.with_dims(made[i], dims));
    }
  }
  std::vector<value> joined;
  for (const auto& entries : results) joined.push_back(entries.size() == 1 ? entries[0] : b.add(concat{0}, entries));
  return joined;
}

std::vector<value> import_any_scan(node& n) { return n.opset < 9 ? import_batched_scan(n) : import_scan(n); }

constexpr operator_row rows[] = {
    {"Scan", import_any_scan, 8, "states keep their shapes or grow"},
};

}  // namespace

std::span<const operator_row> scan_operators() { return rows; }

}  // namespace kiln::onnx_import
