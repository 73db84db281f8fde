#include "onnxruntime/partition.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "onnxruntime/node_order.hpp"

namespace kiln::ort {
namespace {

std::int64_t opset_of(const OrtGraph* graph, const std::string& domain) {
  std::size_t count = 0;
  require(runtime().api->Graph_GetNumOperatorSets(graph, &count));
  std::vector<const char*> domains(count);
  std::vector<std::int64_t> versions(count);
  if (count) require(runtime().api->Graph_GetOperatorSets(graph, domains.data(), versions.data(), count));
  const auto plain = [](std::string d) { return d == "ai.onnx" ? std::string() : d; };
  for (std::size_t i = 0; i < count; ++i)
    if (plain(domains[i]) == plain(domain)) return versions[i];
  return 0;
}

bool is_given(const OrtGraph* graph, const OrtValueInfo* v) {
  const auto given = list<const OrtValueInfo*>(graph, &OrtApi::Graph_GetNumInputs, &OrtApi::Graph_GetInputs);
  return !is_constant(v) && std::ranges::any_of(given, [&](const OrtValueInfo* i) { return name_of(i) == name_of(v); });
}

bool is_result(const OrtValueInfo* v) {
  bool output = false;
  require(runtime().api->ValueInfo_IsGraphOutput(v, &output));
  return output;
}

std::string type_problem(const OrtValueInfo* v, const OrtTypeInfo* type) {
  if (kind_of(type) != ONNX_TYPE_TENSOR) return "'" + name_of(v) + "' is no tensor";
  const OrtApi& api = *runtime().api;
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  require(api.CastTypeInfoToTensorInfo(type, &tensor));
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  require(api.GetTensorElementType(tensor, &element));
  return element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING ? "'" + name_of(v) + "' holds text" : "";
}

// Sequences of tensors may be inside of a part, not what the session takes or gives.
std::string type_problem(const OrtGraph* graph, const OrtValueInfo* v, bool in_body) {
  if (!v) return "";
  const OrtTypeInfo* type = type_info(v);
  const owned_type_info element = element_of(type);
  if (element && !in_body && (is_given(graph, v) || is_result(v))) return "'" + name_of(v) + "' is no tensor";
  return type_problem(v, element ? element.get() : type);
}

// A graph whose nodes are numbered.
struct numbered {
  std::vector<const OrtNode*> nodes;
  std::map<const OrtNode*, std::size_t> number;
  std::vector<std::vector<std::size_t>> sources;  // per node: the nodes that it reads
};

numbered number_nodes(const OrtGraph* graph) {
  numbered g{nodes_of(graph), {}, {}};
  std::map<std::string, std::size_t> producer;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    g.number[g.nodes[i]] = i;
    for (const OrtValueInfo* v : outputs_of(g.nodes[i])) producer[name_of(v)] = i;
  }
  producer.erase("");
  for (const OrtNode* n : g.nodes) {
    std::vector<const OrtValueInfo*> read = inputs_of(n);
    for (const OrtValueInfo* v : captured_by(n)) read.push_back(v);
    auto& from = g.sources.emplace_back();
    for (const OrtValueInfo* v : read)
      if (const auto found = producer.find(name_of(v)); found != producer.end()) from.push_back(found->second);
  }
  return g;
}

// `node` is one of `graph`, or of a body in it.
std::vector<const OrtGraph*> bodies_of(const OrtNode* node) {
  std::size_t count = 0;
  require(runtime().api->Node_GetNumSubgraphs(node, &count));
  std::vector<const OrtGraph*> bodies(count);
  if (count) require(runtime().api->Node_GetSubgraphs(node, bodies.data(), count, nullptr));
  return bodies;
}

std::string reason_against(const OrtGraph* graph, const OrtNode* node, const compiler& with, bool in_body) {
  const std::string domain = domain_of(node), what = operator_of(node);
  const auto [first, last] = with.opsets(domain, what);
  const std::string called = (domain.empty() ? "" : domain + ".") + what;
  if (first > last) return called + " is not known";
  // Of other domains the graph has the version that ONNX Runtime gave it.
  if (const std::int64_t opset = opset_of(graph, domain); domain.empty() && (opset < first || opset > last))
    return called + " is known from opset " + std::to_string(first) + " to " + std::to_string(last) + ", not in " +
           std::to_string(opset);
  for (const auto& values : {inputs_of(node), outputs_of(node), captured_by(node)})
    for (const OrtValueInfo* v : values)
      if (std::string problem = type_problem(graph, v, in_body); !problem.empty()) return called + ": " + problem;
  // Kiln takes the elements of such an input as the sizes themselves. It does not know -1 (infer this size) and 0 (copy
  // it).
  if (const auto inputs = inputs_of(node); domain.empty() && what == "Reshape" && is_given(graph, inputs.at(1)))
    return called + ": the shape is an input, in which -1 and 0 are not known";
  for (const OrtGraph* body : bodies_of(node))
    for (const OrtNode* n : nodes_of(body))
      if (std::string reason = reason_against(graph, n, with, true); !reason.empty()) return called + " with " + reason;
  return "";
}

}  // namespace

std::string reason_against(const OrtGraph* graph, const OrtNode* node, const compiler& with) {
  return reason_against(graph, node, with, false);
}

const OrtNode* reader_without_input(const std::vector<const OrtNode*>& part) {
  if (runtime().fused_nodes_take_captured) return nullptr;
  std::set<std::string> known;
  for (const OrtNode* n : part)
    for (const auto& values : {inputs_of(n), outputs_of(n)})
      for (const OrtValueInfo* v : values) known.insert(name_of(v));
  for (const OrtNode* n : part)
    for (const OrtValueInfo* v : captured_by(n))
      if (!is_constant(v) && !known.contains(name_of(v))) return n;
  return nullptr;
}

bool has_part_in_body(const std::vector<const OrtNode*>& nodes, const std::string& provider) {
  return std::ranges::any_of(nodes, [&](const OrtNode* node) {
    return std::ranges::any_of(bodies_of(node), [&](const OrtGraph* body) {
      const std::vector<const OrtNode*> inside = nodes_of(body);
      return std::ranges::any_of(inside, [&](const OrtNode* n) { return domain_of(n) == provider; }) ||
             has_part_in_body(inside, provider);
    });
  });
}

// A node's level counts how often a path to it changes between taken nodes and others. Nodes of one level that hang
// together are a part: a path that leaves it comes to a higher level.
std::vector<std::vector<const OrtNode*>> parts_of(const OrtGraph* graph,
                                                  const std::function<bool(const OrtNode*)>& taken) {
  const numbered g = number_nodes(graph);
  const std::size_t count = g.nodes.size();
  std::vector<bool> is_taken(count);
  for (std::size_t i = 0; i < count; ++i) is_taken[i] = taken(g.nodes[i]);
  std::vector<std::size_t> level(count), root(count);
  std::iota(root.begin(), root.end(), std::size_t{0});
  const auto find = [&](std::size_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t from : g.sources[i])
      level[i] = std::max(level[i], level[from] + (is_taken[from] != is_taken[i] ? 1 : 0));
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t from : g.sources[i])
      if (is_taken[i] && is_taken[from] && level[i] == level[from]) root[find(i)] = find(from);
  std::map<std::size_t, std::vector<const OrtNode*>> parts;
  for (std::size_t i = 0; i < count; ++i)
    if (is_taken[i]) parts[find(i)].push_back(g.nodes[i]);
  std::vector<std::vector<const OrtNode*>> result;
  for (auto& [ignored, nodes] : parts) result.push_back(std::move(nodes));
  std::ranges::stable_sort(result, std::ranges::greater(), &std::vector<const OrtNode*>::size);
  return result;
}

}  // namespace kiln::ort
