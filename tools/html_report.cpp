#include "tools/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>

#include "ir/container/files.hpp"
#include "ir/printable.hpp"

namespace kiln::tools {
namespace {

constexpr double width = 760, height = 180, left = 56, bottom = 24;

std::string escape(std::string_view text) {
  std::string result;
  for (char c : printable(text)) switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  return result;
}

// An empty plot with the y axis labelled from 0 to `top`, and a caption under the x axis.
std::string frame(double top, std::string_view unit, std::string_view caption, const std::string& inside) {
  std::string svg = fmt::format("<svg viewBox='0 0 {} {}' role='img'>", width, height);
  for (int i = 0; i <= 4; ++i) {
    double y = (height - bottom) * (1 - i / 4.0 * 0.94);
    svg += fmt::format(
        "<line class='grid' x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}'/><text x='{3}' y='{4:.1f}' "
        "text-anchor='end'>{5:.3g}{6}</text>",
        left, width, y, left - 6, y + 4, top * i / 4, i == 4 ? unit : "");
  }
  return svg + inside +
         fmt::format("<text x='{}' y='{}' text-anchor='middle'>{}</text></svg>", (left + width) / 2, height - 6,
                     escape(caption));
}

double y_of(double value, double top) { return (height - bottom) * (1 - (top > 0 ? value / top : 0) * 0.94); }

std::string runs_plot(const std::vector<double>& runs) {
  double top = *std::max_element(runs.begin(), runs.end());
  std::string dots;
  for (std::size_t i = 0; i < runs.size(); ++i)
    dots += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='2'/>",
                        left + (width - left) * (static_cast<double>(i) + 0.5) / static_cast<double>(runs.size()),
                        y_of(runs[i], top));
  return frame(top, " ms", "run", dots);
}

std::string histogram(const std::vector<double>& runs) {
  auto [low, high] = std::minmax_element(runs.begin(), runs.end());
  std::size_t bins = std::clamp<std::size_t>(runs.size() / 4, 1, 40);
  std::vector<double> counts(bins, 0);
  for (double r : runs)
    ++counts[std::min(
        bins - 1, static_cast<std::size_t>((r - *low) / std::max(*high - *low, 1e-12) * static_cast<double>(bins)))];
  double top = *std::max_element(counts.begin(), counts.end()), step = (width - left) / static_cast<double>(bins);
  std::string bars;
  for (std::size_t i = 0; i < bins; ++i)
    bars += fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}'/>",
                        left + step * static_cast<double>(i), y_of(counts[i], top), std::max(step - 1, 0.5),
                        height - bottom - y_of(counts[i], top));
  return frame(top, " runs", fmt::format("milliseconds, {:.4g} to {:.4g}", *low, *high), bars);
}

// Kernels by total time, the largest first.
std::string kernel_table(const nlohmann::ordered_json& per_kernel) {
  struct sum {
    double ms = 0;
    std::size_t uses = 0;
  };
  std::map<std::string, sum> sums;
  double total = 0;
  for (const auto& k : per_kernel) {
    sum& s = sums[k["symbol"].get<std::string>()];
    s.ms += k["ms"].get<double>();
    ++s.uses;
    total += k["ms"].get<double>();
  }
  std::vector<std::pair<std::string, sum>> rows(sums.begin(), sums.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
  std::string html = "<table><tr><th>kernel<th>uses<th>ms<th>share<th></tr>";
  for (const auto& [name, s] : rows) {
    double share = total > 0 ? s.ms / total * 100 : 0;
    html += fmt::format(
        "<tr><td><code>{}</code><td>{}<td>{:.4f}<td>{:.1f} %<td><div class='bar' style='width:{:.1f}%'></div></tr>",
        escape(name), s.uses, s.ms, share, share);
  }
  return html + "</table>";
}

std::string figures(const nlohmann::ordered_json& document) {
  std::string html = "<table>";
  for (const char* key : {"load_ms", "finalize_ms", "first_run_ms", "p50_ms", "p90_ms", "p99_ms", "min_ms", "runs",
                          "kernels", "launches", "peak_memory_bytes"})
    html += fmt::format(
        "<tr><td>{}<td>{}</tr>", key,
        document[key].is_number_float() ? fmt::format("{:.4g}", document[key].get<double>()) : document[key].dump());
  return html + "</table>";
}

constexpr std::string_view style =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:800px;margin:2em auto;padding:0 "
    "1em;color:#222}h2{margin-top:2em}"
    "svg{width:100%}svg "
    "text{font-size:11px;fill:#555}.grid{stroke:#ddd}circle,rect{fill:#c2410c}table{border-collapse:collapse;width:100%"
    "}"
    "td,th{text-align:left;padding:2px 10px 2px 0;border-bottom:1px solid "
    "#eee}.bar{background:#c2410c;height:10px}td:last-child{width:30%}";

}  // namespace

void write_html_report(const std::filesystem::path& file, const nlohmann::ordered_json& document,
                       const std::vector<double>& runs_ms) {
  std::string title = escape(document["file"].get<std::string>());
  std::string page = fmt::format(
      "<!doctype html><html lang='en'><meta charset='utf-8'><title>{0}</title><style>{1}</style><h1>{0}</h1><p>{2}, "
      "{3} threads</p>{4}<h2>Runs</h2>{5}<h2>Distribution</h2>{6}<h2>Kernels</h2>"
      "<p>Milliseconds of one run with every launch timed on its own.</p>{7}</html>\n",
      title, style, escape(document["device_description"].get<std::string>()), document["threads"].dump(),
      figures(document), runs_plot(runs_ms), histogram(runs_ms), kernel_table(document["per_kernel"]));
  container::output_file out(file);
  out.write(std::as_bytes(std::span(page)));
  out.commit();
}

}  // namespace kiln::tools
