#include "tools/program_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "ir/code_object.hpp"
#include "ir/ops/structure.hpp"
#include "runtime/alias.hpp"
#include "runtime/arena.hpp"

namespace kiln::tools {
namespace {

std::string name_of(const instruction& i) {
  const auto* kernel = i.op().get_if<code_object>();
  return kernel ? kernel->symbol : std::string(i.op().name());
}

// An instruction that runs: no parameter, no constant and no other name of a value.
bool is_step(const instruction& i) {
  if (i.op().is<parameter>() || i.op().is<constant>()) return false;
  return !alias_source(i);
}

std::size_t constant_bytes(const instruction& i) {
  std::size_t sum = 0;
  for (value v : i.inputs())
    if (const literal* data = module::constant(alias_root(v))) sum += data->type().bytes();
  return sum;
}

graph_node node_of(const instruction& i) {
  const auto* kernel = i.op().get_if<code_object>();
  graph_node node{name_of(i), i.origin(), i.origin(), "", kernel ? "kernel" : "operation"};
  if (kernel) node.link = fmt::format("#kernel-{}", kernel->payload.substr(0, 16));
  std::string types;
  for (const shape& s : i.outputs()) types += fmt::format(" → {}", s.str());
  if (const std::size_t bytes = constant_bytes(i)) types += fmt::format(", weights of {:.3g} kB", bytes / 1e3);
  for (const module* body : i.bodies()) types += fmt::format(", body {}", body->name());
  node.tip += (node.tip.empty() ? node.title : "") + types;
  if (node.detail.empty() && !i.outputs().empty()) node.detail = i.outputs().front().str();
  return node;
}

}  // namespace

layered_graph graph_of(const module& m) {
  layered_graph graph;
  std::map<value, std::size_t> makers;
  for (value v : m.parameters()) {
    makers.emplace(v, graph.nodes.size());
    graph.nodes.push_back({module::parameter_name(v), v.type().str(), module::parameter_name(v), "", "input"});
  }
  auto connect = [&](value v, std::size_t to) {
    const value source = alias_root(v);
    if (const auto maker = makers.find(source); maker != makers.end())
      graph.edges.push_back({maker->second, to, v.type().str()});
  };
  for (const instruction& i : m.instructions()) {
    if (!is_step(i)) continue;
    const std::size_t node = graph.nodes.size();
    graph.nodes.push_back(node_of(i));
    for (value v : i.inputs()) connect(v, node);
    for (std::uint32_t o = 0; o < i.outputs().size(); ++o) makers.emplace(value{const_cast<instruction*>(&i), o}, node);
  }
  for (std::size_t o = 0; o < m.outputs().size(); ++o) {
    const std::size_t node = graph.nodes.size();
    const value v = m.outputs()[o];
    graph.nodes.push_back({m.output_names()[o], v.type().str(), m.output_names()[o], "", "output"});
    connect(v, node);
  }
  return graph;
}

layered_graph graph_of(const kernel_sketch& kernel) {
  layered_graph graph;
  std::map<std::string, std::pair<std::size_t, std::string>> makers;  // of a value: its node and its type
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const std::string type = i < kernel.parameter_types.size() ? kernel.parameter_types[i].str() : "";
    makers[kernel.parameters[i]] = {graph.nodes.size(), type};
    graph.nodes.push_back({fmt::format("input {}", i), type, type, "", "input"});
  }
  auto connect = [&](const std::string& name, std::size_t to) {
    if (const auto maker = makers.find(name); maker != makers.end())
      graph.edges.push_back({maker->second.first, to, maker->second.second});
  };
  for (const sketch_step& s : kernel.steps) {
    const std::size_t node = graph.nodes.size();
    const std::string type = s.result_types.empty() ? "" : s.result_types[0].str();
    // A pointwise function says more than its operation.
    const std::size_t function = s.attributes.find("function = \"");
    const std::string title =
        function == std::string::npos
            ? s.operation
            : s.attributes.substr(function + 12, s.attributes.find('"', function + 12) - function - 12);
    graph.nodes.push_back({title, type, fmt::format("{} {}", s.operation, s.attributes), "", "operation"});
    for (const std::string& operand : s.operands) connect(operand, node);
    for (std::size_t r = 0; r < s.results.size(); ++r)
      makers[s.results[r]] = {node, r < s.result_types.size() ? s.result_types[r].str() : ""};
  }
  for (std::size_t o = 0; o < kernel.results.size(); ++o) {
    const std::size_t node = graph.nodes.size();
    graph.nodes.push_back({fmt::format("output {}", o), "", "", "", "output"});
    connect(kernel.results[o], node);
  }
  return graph;
}

memory_plan plan_memory(const module& m) {
  memory_plan result;
  std::map<value, std::size_t> index;
  for (const instruction& i : m.instructions()) {
    if (!is_step(i)) continue;
    const std::size_t step = result.steps++;
    for (value v : i.inputs())
      if (const auto used = index.find(alias_root(v)); used != index.end()) result.values[used->second].last = step;
    for (std::uint32_t o = 0; o < i.outputs().size(); ++o) {
      index.emplace(value{const_cast<instruction*>(&i), o}, result.values.size());
      result.values.push_back({name_of(i), i.outputs()[o], i.outputs()[o].bytes(), 0, step, step});
    }
  }
  // Outputs lie in the caller's memory.
  for (value v : m.outputs())
    if (const auto out = index.find(alias_root(v)); out != index.end()) result.values[out->second].bytes = 0;
  std::erase_if(result.values, [](const planned_value& v) { return v.bytes == 0; });
  std::vector<arena_request> requests;
  for (const planned_value& v : result.values)
    requests.push_back({v.bytes, static_cast<std::int64_t>(v.first), static_cast<std::int64_t>(v.last)});
  const arena_layout layout = pack_arena(requests);
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i].offset = layout.offsets[i];
  result.bytes = layout.bytes;
  result.sum = layout.sum;
  result.lower_bound = layout.lower_bound;
  return result;
}

}  // namespace kiln::tools
