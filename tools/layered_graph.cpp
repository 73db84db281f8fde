#include "tools/layered_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/printable.hpp"
#include "tools/html_text.hpp"

namespace kiln::tools {
namespace {

constexpr double box_width = 190, box_height = 36, gap_x = 24, gap_y = 34, margin = 8;

struct placed {
  std::size_t layer = 0;
  double x = 0;
  double y() const { return margin + static_cast<double>(layer) * (box_height + gap_y); }
};

// Layers by the longest way from a node without predecessors. Inside a layer, nodes are sorted by the mean place of
// their predecessors, as in the method of Sugiyama, Tagawa and Toda (1981), downwards once.
std::vector<placed> place(const layered_graph& graph) {
  std::vector<placed> result(graph.nodes.size());
  std::vector<std::vector<std::size_t>> before(graph.nodes.size()), after(graph.nodes.size());
  for (const graph_edge& e : graph.edges) {
    before[e.to].push_back(e.from);
    after[e.from].push_back(e.to);
  }
  for (std::size_t n = 0; n < result.size(); ++n)
    for (std::size_t p : before[n]) result[n].layer = std::max(result[n].layer, result[p].layer + 1);
  // An input stands just above its first user.
  for (std::size_t n = 0; n < result.size(); ++n) {
    if (!before[n].empty() || after[n].empty()) continue;
    std::size_t first = result[after[n].front()].layer;
    for (std::size_t user : after[n]) first = std::min(first, result[user].layer);
    result[n].layer = first > 0 ? first - 1 : 0;
  }
  std::size_t layers = 0;
  for (const placed& p : result) layers = std::max(layers, p.layer + 1);
  std::vector<std::vector<std::size_t>> rows(layers);
  for (std::size_t n = 0; n < result.size(); ++n) rows[result[n].layer].push_back(n);
  for (auto& row : rows) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t n : row) {
      double sum = 0;
      for (std::size_t p : before[n]) sum += result[p].x;
      order.emplace_back(before[n].empty() ? 1e9 : sum / static_cast<double>(before[n].size()), n);
    }
    std::ranges::stable_sort(order, {}, &std::pair<double, std::size_t>::first);
    double x = -1e9, moved = 0, pulled = 0;
    for (const auto& [wanted, n] : order) {
      result[n].x = wanted < 1e9 ? std::max(x, wanted) : std::max(x, 0.0);
      x = result[n].x + box_width + gap_x;
      if (wanted < 1e9) moved += result[n].x - wanted, ++pulled;
    }
    // Centres the layer below the mean position of its predecessors.
    for (std::size_t n : row) result[n].x -= pulled > 0 ? moved / pulled : 0;
  }
  double least = 0;
  for (const placed& p : result) least = std::min(least, p.x);
  for (placed& p : result) p.x += margin - least;
  return result;
}

std::string shortened(const std::string& text, std::size_t most) {
  std::string line = printable(text);
  if (line.size() <= most) return line;
  std::size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return line.substr(0, end) + "…";
}

std::string dot_text(std::string_view text) {
  std::string result;
  for (char c : printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string draw_svg(const layered_graph& graph, const std::string& prefix) {
  const std::vector<placed> places = place(graph);
  double width = 0, height = 0;
  for (const placed& p : places) {
    width = std::max(width, p.x + box_width + margin);
    height = std::max(height, p.y() + box_height + margin);
  }
  std::string svg =
      fmt::format("<svg class='graph' viewBox='0 0 {0} {1}' width='{0}' height='{1}' role='img'>", width, height);
  for (const graph_edge& e : graph.edges) {
    const placed &a = places[e.from], &b = places[e.to];
    const double x0 = a.x + box_width / 2, y0 = a.y() + box_height, x1 = b.x + box_width / 2, y1 = b.y();
    const double bend = std::max(gap_y, (y1 - y0) / 2);
    svg += fmt::format(
        "<path class='edge' d='M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}'><title>{}</title></path>", x0,
        y0, x0, y0 + bend, x1, y1 - bend, x1, y1, html_text(e.label));
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph_node& node = graph.nodes[n];
    const placed& p = places[n];
    std::string box = fmt::format(
        "<g id='{}-{}' class='{}'><rect x='{}' y='{}' width='{}' height='{}' rx='5'/><text x='{}' y='{}'>{}</text>",
        prefix, n, node.kind, p.x, p.y(), box_width, box_height, p.x + 8, p.y() + 15,
        html_text(shortened(node.title, 30)));
    if (!node.detail.empty())
      box += fmt::format("<text class='detail' x='{}' y='{}'>{}</text>", p.x + 8, p.y() + 29,
                         html_text(shortened(node.detail, 34)));
    box += fmt::format("<title>{}</title></g>", html_text(node.tip));
    svg += node.link.empty() ? box : fmt::format("<a href='{}'>{}</a>", html_text(node.link), box);
  }
  return svg + "</svg>";
}

std::string draw_dot(const layered_graph& graph, const std::string& name) {
  std::string dot = fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=\"sans-serif\"];\n", dot_text(name));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph_node& node = graph.nodes[n];
    dot += fmt::format("  n{} [label=\"{}{}\", tooltip=\"{}\"{}];\n", n, dot_text(node.title),
                       node.detail.empty() ? "" : "\\n" + dot_text(node.detail), dot_text(node.tip),
                       node.kind == "input" || node.kind == "output" ? ", shape=ellipse" : "");
  }
  for (const graph_edge& e : graph.edges)
    dot += fmt::format("  n{} -> n{} [label=\"{}\"];\n", e.from, e.to, dot_text(e.label));
  return dot + "}\n";
}

}  // namespace kiln::tools
