// Scan, as a loop over the elements of its scan inputs.
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/body_module.hpp"

namespace kiln::onnx_import {
namespace {

// Imports Scan as a Loop. In each iteration the body reads the scan inputs at the iteration's index.
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
  auto axes = list("scan_input_axes", scans), directions = list("scan_input_directions", scans);
  auto out_axes = list("scan_output_axes", collected), out_directions = list("scan_output_directions", collected);
  captures outer;
  capture(n, graph, outer);
  body_module body(n, "body");
  value iteration = body.made.add_parameter("iteration", {element_type::i64, {}});
  value go_on = body.made.add_parameter("condition", {element_type::boolean, {}});
  std::vector<value> arguments{value{}, b.scalar(element_type::boolean, 1)};
  for (std::size_t i = 0; i < states; ++i) {
    arguments.push_back(n.in(i));
    body.parameter(graph.input(static_cast<int>(i)).name(), n.type(i));
  }
  std::int64_t length = -1;
  std::vector<value> whole;
  for (std::size_t i = 0; i < scans; ++i) {
    axes[i] = normalize_axis(axes[i], n.rank(states + i));
    const dim& size = n.dims(states + i)[static_cast<std::size_t>(axes[i])];
    if (!size.is_static()) refuse("scans dimension '" + size.str() + "'; give it a value with --dim");
    if (length >= 0 && size.value() != length) invalid("its scan inputs have different lengths");
    length = size.value();
    arguments.push_back(n.in(states + i));
    whole.push_back(body.made.add_parameter("scanned_" + std::to_string(i), n.type(states + i)));
  }
  body.capture(outer);
  arguments.insert(arguments.end(), outer.values.begin(), outer.values.end());
  arguments[0] = b.constant(literal::of<std::int64_t>({element_type::i64, {}}, {length}));
  for (std::size_t i = 0; i < scans; ++i) {
    value last = body.b.constant(literal::of<std::int64_t>({element_type::i64, {}}, {length - 1}));
    value at = directions[i] ? body.b.binary(scalar_function::sub, last, iteration) : iteration;
    body.inside.define(graph.input(static_cast<int>(states + i)).name(), body.b.add(gather{axes[i]}, {whole[i], at}));
  }
  body.inside.run(graph);
  auto outputs = body.inside.outputs(graph);
  for (std::size_t i = 0; i < states; ++i)
    if (outputs[i].type() != n.type(i))
      refuse("state " + std::to_string(i) + " changes its shape from " + n.type(i).str() + " to " +
             outputs[i].type().str());
  outputs.insert(outputs.begin(), go_on);
  auto names = numbered(outputs.size());
  body.made.set_outputs(std::move(outputs), std::move(names));
  auto results =
      all_outputs(b.add(loop{static_cast<std::int64_t>(states), length}, arguments, {&body.made}), states + collected);
  // Stack the scan outputs of all iterations along axis 0, in order.
  for (std::size_t i = 0; i < collected; ++i) {
    value& v = results[states + i];
    auto dims = v.type().dims;
    if (out_directions[i]) {
      slice reversed{std::vector<std::int64_t>(dims.size(), 0), dims, std::vector<std::int64_t>(dims.size(), 1)};
      reversed.starts[0] = length - 1;
      reversed.steps[0] = -1;
      v = b.add(reversed, {v});
    }
    std::vector<std::int64_t> order;
    for (std::size_t k = 1; k < dims.size(); ++k) order.push_back(static_cast<std::int64_t>(k));
    order.insert(order.begin() + normalize_axis(out_axes[i], dims.size()), 0);
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
    {"Scan", import_any_scan, 8, "states keep their shapes; length known at import"},
};

}  // namespace

std::span<const operator_row> scan_operators() { return rows; }

}  // namespace kiln::onnx_import
