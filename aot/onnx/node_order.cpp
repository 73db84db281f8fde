#include "aot/onnx/node_order.hpp"

#include <string>
#include <unordered_map>
#include <vector>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {
namespace {

// Returns the names that a node and its bodies read.
std::vector<std::string> names_read(const ::onnx::NodeProto& node) {
  std::vector<std::string> names(node.input().begin(), node.input().end());
  for (const auto& a : node.attribute())
    if (a.has_g())
      for (auto& name : outer_names(a.g())) names.push_back(std::move(name));
  return names;
}

}  // namespace

void order_nodes(::onnx::GraphProto& graph) {
  auto& nodes = *graph.mutable_node();
  std::unordered_map<std::string, int> producer;
  for (int i = 0; i < nodes.size(); ++i)
    for (const auto& name : nodes[i].output())
      if (!name.empty()) producer.emplace(name, i);
  std::vector<std::vector<int>> needed(static_cast<std::size_t>(nodes.size()));
  bool ordered = true;
  for (int i = 0; i < nodes.size(); ++i)
    for (const auto& name : names_read(nodes[i]))
      if (auto found = producer.find(name); found != producer.end() && found->second != i) {
        needed[static_cast<std::size_t>(i)].push_back(found->second);
        ordered &= found->second < i;
      }
  if (ordered) return;
  // Depth-first search: visits the producers of each node before the node itself.
  enum class state : std::uint8_t { untouched, open, done };
  std::vector<state> states(needed.size(), state::untouched);
  std::vector<int> order;
  for (int root = 0; root < nodes.size(); ++root) {
    std::vector<std::pair<int, std::size_t>> path{{root, 0}};
    if (states[static_cast<std::size_t>(root)] != state::untouched) continue;
    while (!path.empty()) {
      auto& [i, next] = path.back();
      auto at = static_cast<std::size_t>(i);
      states[at] = state::open;
      if (next == needed[at].size()) {
        states[at] = state::done;
        order.push_back(i);
        path.pop_back();
      } else if (int producing = needed[at][next++]; states[static_cast<std::size_t>(producing)] == state::untouched) {
        path.emplace_back(producing, 0);
      }
    }
  }
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> sorted;
  for (int i : order) *sorted.Add() = std::move(nodes[i]);
  nodes.Swap(&sorted);
}

}  // namespace kiln::onnx_import
