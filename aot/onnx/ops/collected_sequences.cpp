#include "aot/onnx/ops/collected_sequences.hpp"

#include <algorithm>
#include <ranges>
#include <set>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/ops/stacked.hpp"

namespace kiln::onnx_import {
namespace {

// How often the nodes of the graph, and of the graphs nested in it, use the name.
std::size_t uses_of(const ::onnx::GraphProto& graph, const std::string& name) {
  std::size_t uses = 0;
  for (const auto& n : graph.node()) {
    uses += static_cast<std::size_t>(std::ranges::count(n.input(), name));
    for (const auto& a : n.attribute())
      if (a.has_g()) uses += static_cast<std::size_t>(std::ranges::count(outer_names(a.g()), name));
  }
  return uses;
}

// Returns the index of the node that appends to the carried sequence; -1 if the sequence is used in another way.
int appending_node(const ::onnx::GraphProto& body, const std::string& before, const std::string& after) {
  if (uses_of(body, before) != 1 || uses_of(body, after) != 0) return -1;
  if (std::ranges::count_if(body.output(), [&](const auto& o) { return o.name() == after; }) != 1) return -1;
  for (int i = 0; i < body.node_size(); ++i) {
    const auto& n = body.node(i);
    const bool appends = n.op_type() == "SequenceInsert" && n.input_size() >= 2 && n.input(0) == before &&
                         (n.input_size() == 2 || n.input(2).empty());
    if (appends && n.output_size() == 1 && n.output(0) == after) return i;
  }
  return -1;
}

template <class List>
void erase_at(List& list, const std::set<int>& positions) {
  for (int at : positions | std::views::reverse) list.DeleteSubrange(at, 1);
}

}  // namespace

std::optional<collected_sequences> collected_sequences::find(node& n, const ::onnx::GraphProto& body) {
  collected_sequences made;
  made.carried_ = n.inputs() - 2;
  made.inputs_ = {n.all()[0], n.all()[1]};
  std::set<int> nodes, inputs, outputs;
  std::vector<std::string> appended;
  for (std::size_t i = 0; i < made.carried_; ++i) {
    const compound* c = n.has(i + 2) ? find_compound(n.owner.state(), n.in(i + 2)) : nullptr;
    if (!c) {
      made.inputs_.push_back(n.all()[i + 2]);
      continue;
    }
    const int at = static_cast<int>(i);
    const int node = c->is_optional ? -1 : appending_node(body, body.input(at + 2).name(), body.output(at + 1).name());
    if (node < 0) return std::nullopt;
    nodes.insert(node), inputs.insert(at + 2), outputs.insert(at + 1);
    appended.push_back(body.node(node).input(1));
    made.sequences_.push_back(i);
  }
  made.proto_ = n.proto;
  for (auto& a : *made.proto_.mutable_attribute()) {
    if (a.name() != "body") continue;
    ::onnx::GraphProto& graph = *a.mutable_g();
    graph = body;
    erase_at(*graph.mutable_node(), nodes);
    erase_at(*graph.mutable_input(), inputs);
    erase_at(*graph.mutable_output(), outputs);
    for (const auto& name : appended) graph.add_output()->set_name(name);
  }
  auto& parts = *made.proto_.add_attribute();
  parts.set_name(std::string(parts_attribute)), parts.set_type(::onnx::AttributeProto::INT);
  parts.set_i(static_cast<std::int64_t>(appended.size()));
  return made;
}

void append_part(::onnx::GraphProto& body, std::size_t carried, std::size_t scan, std::size_t axis) {
  const std::string name = "joined." + std::to_string(scan), appended = name + ".appended";
  const int output = static_cast<int>(carried + 1 + scan);
  ::onnx::NodeProto& node = *body.add_node();
  node.set_op_type("Concat");
  node.add_input(name), node.add_input(body.output(output).name());
  node.add_output(appended);
  auto& attribute = *node.add_attribute();
  attribute.set_name("axis"), attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_i(static_cast<std::int64_t>(axis));
  body.add_input()->set_name(name);
  body.mutable_output(output)->set_name(appended);
  for (int i = output; i > static_cast<int>(carried) + 1; --i) body.mutable_output()->SwapElements(i, i - 1);
}

std::vector<value> collected_sequences::results(node& n, const std::vector<value>& made) const {
  std::vector<value> results;
  const std::size_t scans = made.size() - sequences_.size();
  std::size_t next = 0, sequence = 0;
  for (std::size_t i = 0; i < carried_; ++i) {
    if (sequence == sequences_.size() || sequences_[sequence] != i) {
      results.push_back(made[next++]);
      continue;
    }
    value collected = made[scans + sequence++];
    const compound before = *find_compound(n.owner.state(), n.in(i + 2));
    if (find_compound(n.owner.state(), collected)) {
      if (before.stacked || before.joined || !before.elements.empty())
        refuse("appends parts of different sizes to a sequence that is not empty");
      results.push_back(collected);
      continue;
    }
    value all = before.stacked || !before.elements.empty() ? appended(n, stacked(n, before), collected) : collected;
    results.push_back(add_compound(n.owner.state(), n.b, {false, {}, all}));
  }
  results.insert(results.end(), made.begin() + static_cast<std::ptrdiff_t>(next),
                 made.begin() + static_cast<std::ptrdiff_t>(scans));
  return results;
}

}  // namespace kiln::onnx_import
