// A drawing of a directed graph without circles: nodes in layers, each below everything that it depends on. As SVG for
// pages and as DOT for Graphviz. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kiln::tools {

struct graph_node {
  std::string title, detail;  // two lines of the box; the second may be empty
  std::string tip;            // shown when one points at it
  std::string link;           // "#some-id", or empty
  std::string kind;           // class of the box: "input", "output", "kernel", "operation"
};

struct graph_edge {
  std::size_t from, to;  // indices of nodes; from < to
  std::string label;     // the tensor's type
};

struct layered_graph {
  std::vector<graph_node> nodes;  // in topological order
  std::vector<graph_edge> edges;
};

// An <svg> element whose size is that of its viewBox. Its nodes have the id "PREFIX-INDEX".
std::string draw_svg(const layered_graph& graph, const std::string& prefix);
// A `digraph` that is called `name`.
std::string draw_dot(const layered_graph& graph, const std::string& name);

}  // namespace kiln::tools
