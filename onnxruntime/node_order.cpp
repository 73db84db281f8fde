#include "onnxruntime/node_order.hpp"

#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace kiln::ort {

// ONNX Runtime numbers the nodes of a file one after another, and those that its optimizers add after them. So the node
// to come next is the one with the least number among those that wait for nothing.
std::vector<const OrtNode*> nodes_of(const OrtGraph* graph) {
  const auto nodes = list<const OrtNode*>(graph, &OrtApi::Graph_GetNumNodes, &OrtApi::Graph_GetNodes);
  std::map<std::string, std::size_t> maker;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const OrtValueInfo* v : outputs_of(nodes[i]))
      if (v) maker.emplace(name_of(v), i);
  std::vector<std::size_t> missing(nodes.size());  // how many values a node waits for
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  using numbered = std::pair<std::size_t, std::size_t>;  // ONNX Runtime's number of a node, and its place in `nodes`
  std::priority_queue<numbered, std::vector<numbered>, std::greater<>> ready;
  const auto add_ready = [&](std::size_t i) {
    std::size_t number = 0;
    require(runtime().api->Node_GetId(nodes[i], &number));
    ready.emplace(number, i);
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<const OrtValueInfo*> read = inputs_of(nodes[i]);
    for (const OrtValueInfo* v : captured_by(nodes[i])) read.push_back(v);
    for (const OrtValueInfo* v : read)
      if (const auto made = v ? maker.find(name_of(v)) : maker.end(); made != maker.end())
        readers[made->second].push_back(i), ++missing[i];
    if (!missing[i]) add_ready(i);
  }
  std::vector<const OrtNode*> result;
  while (!ready.empty()) {
    const std::size_t next = ready.top().second;
    ready.pop();
    result.push_back(nodes[next]);
    for (std::size_t r : readers[next])
      if (--missing[r] == 0) add_ready(r);
  }
  return result;
}

}  // namespace kiln::ort
