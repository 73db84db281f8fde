#include "tools/inspect_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "ir/container/files.hpp"
#include "tools/html_text.hpp"
#include "tools/kernel_sketch.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::ordered_json;

std::string text_at(const json& row, const char* key) { return html_text(row[key].get<std::string>()); }

std::string ports(const json& document) {
  std::string html = "<table><tr><th><th>name<th>shape</tr>";
  for (const char* list : {"inputs", "outputs"})
    for (const json& port : document[list])
      html += fmt::format("<tr><td>{}<td>{}<td><code>{}</code></tr>",
                          std::string_view(list, std::string_view(list).size() - 1), text_at(port, "name"),
                          text_at(port, "shape"));
  return html + "</table>";
}

std::string figures(const json& document) {
  const json& weights = document["weights"];
  std::string html = fmt::format(
      "<table><tr><td>size of the file<td>{:.3f} MB</tr><tr><td>kernels, and their uses<td>{}, {}</tr>"
      "<tr><td>operations left to the reference interpreter<td>{}</tr>"
      "<tr><td>weights<td>{} tensors, {:.3f} MB stored for {:.3f} MB</tr>"
      "<tr><td>needs Kiln<td>{} or newer</tr></table><h3>Sections</h3>"
      "<table><tr><th>section<th>codec<th>stored<th>raw</tr>",
      document["bytes"].get<double>() / 1e6, document["kernels"].size(), document["code_objects"].dump(),
      document["interpreted"].dump(), weights["tensors"].dump(), weights["stored_bytes"].get<double>() / 1e6,
      weights["full_bytes"].get<double>() / 1e6, text_at(document, "required_version"));
  for (const json& s : document["sections"])
    html += fmt::format("<tr><td>{}<td>{}<td>{:.3f} MB<td>{:.3f} MB</tr>", text_at(s, "kind"), text_at(s, "codec"),
                        s["stored_bytes"].get<double>() / 1e6, s["raw_bytes"].get<double>() / 1e6);
  return html + "</table>";
}

// The drawing in a window of its own that scrolls. Three buttons, without scripts: each is a radio button that sets the
// drawing's size.
std::string window(const std::string& name, const std::string& svg) {
  std::string html = "<div class='zoom'>";
  for (int percent : {40, 70, 100})
    html += fmt::format(
        "<input type='radio' name='{0}' id='zoom-{0}-{1}' class='z{1}'{2}><label for='zoom-{0}-{1}'>{1} %</label>",
        name, percent, percent == 100 ? " checked" : "");
  return html + fmt::format("<div class='window'>{}</div></div>", svg);
}

std::string kernel_table(const json& document) {
  std::string html = "<table><tr><th>kernel<th>hash<th>format<th>bytes<th>uses<th>open sizes</tr>";
  for (const json& k : document["kernels"]) {
    const std::string hash = k["hash"].get<std::string>().substr(0, 16);
    std::string sizes;
    if (k.contains("rows")) {
      const std::string missing = text_at(k, "missing");
      sizes = k["all_sizes"].get<bool>() ? "one kernel for all sizes"
              : missing.empty()          ? "a kernel for each set of sizes"
                                         : fmt::format("a kernel for each set of sizes: {}", missing);
    }
    html += fmt::format("<tr><td><a href='#kernel-{0}'>{1}</a><td><code>{0}</code><td>{2}<td>{3}<td>{4}<td>{5}</tr>",
                        hash, text_at(k, "symbol"), text_at(k, "format"), k["bytes"].dump(), k["uses"].dump(), sizes);
  }
  return html + "</table>";
}

// Each kernel with the operations that were fused into it, and its text.
std::string kernel_panels(const inspect_page& page) {
  std::string html;
  for (const json& k : page.document["kernels"]) {
    const std::string hash = k["hash"].get<std::string>();
    html += fmt::format("<section class='kernel' id='kernel-{0}'><h3>{1} <code>{0}</code></h3>", hash.substr(0, 16),
                        text_at(k, "symbol"));
    const auto text = page.kernels.find(hash);
    if (text == page.kernels.end()) {
      html += "<p>This kernel has no portable form to show.</p></section>";
      continue;
    }
    std::string lines;
    for (std::size_t at = 0, end = 0; at < text->second.size(); at = end + 1) {
      end = std::min(text->second.find('\n', at), text->second.size());
      lines += html_text(std::string_view(text->second).substr(at, end - at)) + "\n";
    }
    html += fmt::format("<div class='window'>{}</div><details><summary>text</summary><pre>{}</pre></details></section>",
                        draw_svg(graph_of(read_kernel_text(text->second)), "k" + hash.substr(0, 16)), lines);
  }
  return html;
}

// A rectangle for each value: the steps from left to right, the arena's bytes from bottom to top.
std::string memory_chart(const memory_plan& plan) {
  constexpr double height = 300, left = 70, bottom = 24;
  const double width = std::clamp(static_cast<double>(plan.steps) * 8, 820.0, 6000.0);
  const double step = width / static_cast<double>(std::max<std::size_t>(plan.steps, 1));
  const double scale = height / static_cast<double>(std::max<std::size_t>(plan.bytes, 1));
  std::string svg = fmt::format("<div class='window'><svg viewBox='0 0 {0} {1}' width='{0}' height='{1}' role='img'>",
                                left + width + 10, height + bottom);
  for (int i = 0; i <= 4; ++i)
    svg += fmt::format(
        "<line class='grid' x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}'/><text x='{3}' y='{4:.1f}' "
        "text-anchor='end'>{5:.3g} MB</text>",
        left, left + width, height * (1 - i / 4.0), left - 6, height * (1 - i / 4.0) + (i == 4 ? 10 : 0),
        static_cast<double>(plan.bytes) / 1e6 * i / 4);
  for (const planned_value& v : plan.values)
    svg += fmt::format(
        "<rect class='value' x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}'><title>{}&#10;{}, {:.3f} "
        "MB&#10;steps "
        "{} to {}, at {}</title></rect>",
        left + step * static_cast<double>(v.first), height - scale * static_cast<double>(v.offset + v.bytes),
        std::max(step * static_cast<double>(v.last - v.first + 1) - 0.5, 0.5),
        std::max(scale * static_cast<double>(v.bytes) - 0.5, 0.5), html_text(v.name), html_text(v.type.str()),
        static_cast<double>(v.bytes) / 1e6, v.first, v.last, v.offset);
  return svg + fmt::format("<text x='{}' y='{}' text-anchor='middle'>steps 0 to {}</text></svg></div>",
                           left + width / 2, height + 18, plan.steps ? plan.steps - 1 : 0);
}

std::string memory(const inspect_page& page) {
  if (!page.memory) return fmt::format("<p>{}</p>", html_text(page.memory_note));
  const memory_plan& plan = *page.memory;
  return fmt::format(
             "<p>{} The arena takes {:.3f} MB; at one step at most {:.3f} MB are needed, and without sharing it would "
             "be "
             "{:.3f} MB. A target may need scratch memory besides.</p>",
             html_text(page.memory_note), static_cast<double>(plan.bytes) / 1e6,
             static_cast<double>(plan.lower_bound) / 1e6, static_cast<double>(plan.sum) / 1e6) +
         memory_chart(plan);
}

constexpr std::string_view style =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:2em auto;padding:0 "
    "1em;color:#222}h2{margin-top:2em}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:2px 10px 2px "
    "0;border-bottom:1px solid #eee}svg text{font-size:11px;fill:#222}svg .detail{fill:#666;font-size:10px}"
    ".window{overflow:auto;max-height:640px;border:1px solid #ddd;padding:4px}.grid{stroke:#ddd}"
    ".edge{fill:none;stroke:#999}.edge:hover{stroke:#1d4ed8;stroke-width:3}"
    ".kernel rect{fill:#ffedd5;stroke:#c2410c}.operation rect{fill:#f3f4f6;stroke:#6b7280}"
    ".input rect,.output rect{fill:#dbeafe;stroke:#1d4ed8}.value{fill:#fdba74;stroke:#fff;stroke-width:.5}"
    ".value:hover{fill:#1d4ed8}.zoom label{margin-right:1em}.zoom .window{width:100%;box-sizing:border-box}"
    ".z40:checked~.window svg{zoom:.4}.z70:checked~.window svg{zoom:.7}"
    "section.kernel{margin:1em 0;padding:0 .6em}section.kernel:target{background:#fff7ed;outline:2px solid #c2410c}"
    "pre{overflow:auto}";

}  // namespace

void write_inspect_page(const std::filesystem::path& file, const inspect_page& page) {
  const std::string title = text_at(page.document, "file");
  std::string html = fmt::format(
      "<!doctype html><html lang='en'><meta charset='utf-8'><title>{0}</title><style>{1}</style><h1>{0}</h1>{2}{3}"
      "<h2>Graph</h2><p>A box is a kernel, with the nodes of the model that were fused into it. Follow it to see its "
      "operations; point at a line to see the tensor.</p>",
      title, style, ports(page.document), figures(page.document));
  for (std::size_t i = 0; i < page.modules.size(); ++i) {
    const auto& [name, graph] = page.modules[i];
    if (i > 0) html += fmt::format("<h3>{}</h3>", html_text(name));
    html += window(fmt::format("m{}", i), draw_svg(graph, fmt::format("m{}", i)));
  }
  html += fmt::format("<h2>Memory of intermediate values</h2>{}<h2>Kernels</h2>{}{}</html>\n", memory(page),
                      kernel_table(page.document), kernel_panels(page));
  container::output_file out(file);
  out.write(std::as_bytes(std::span(html)));
  out.commit();
}

}  // namespace kiln::tools
