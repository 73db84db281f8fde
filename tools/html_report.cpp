#include "tools/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <string>

#include "ir/container/files.hpp"
#include "tools/html_text.hpp"
#include "tools/opened_model.hpp"

namespace kiln::tools {
namespace {

constexpr double width = 760, height = 180, left = 64, bottom = 24;

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
                     html_text(caption));
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

// One launch of the report: an entry of perf's `per_kernel`.
struct launch_row {
  std::string symbol, origin;
  double ms = 0, begin_ms = 0;  // launches follow one another
  double bytes = 0, live_bytes = 0;
  double operations = 0;  // 0: unknown, or it only moves data
  const std::string& label() const { return origin.empty() ? symbol : origin; }
};

std::vector<launch_row> rows_of(const nlohmann::ordered_json& per_kernel) {
  std::vector<launch_row> rows;
  double now = 0;
  for (const auto& k : per_kernel) {
    rows.push_back({k["symbol"].get<std::string>(), k["origin"].get<std::string>(), k["ms"].get<double>(), now,
                    k["bytes"].get<double>(), k["live_bytes"].get<double>(),
                    k["operations"].is_null() ? 0 : k["operations"].get<double>()});
    now += rows.back().ms;
  }
  return rows;
}

double end_of(const std::vector<launch_row>& rows) {
  return rows.empty() ? 0 : std::max(rows.back().begin_ms + rows.back().ms, 1e-9);
}

constexpr double lane_height = 22, lane_left = 190;

// A lane for each kind of kernel, a bar for each launch, and below them the memory in use. A bar leads to its row of
// the table.
std::string timeline(const std::vector<launch_row>& rows) {
  std::vector<std::string> lanes;
  for (const launch_row& r : rows)
    if (std::ranges::find(lanes, r.symbol) == lanes.end()) lanes.push_back(r.symbol);
  // With many launches the picture is wider than the page, which scrolls it.
  const double time_width = std::clamp(static_cast<double>(rows.size()) * 16, 820.0, 16000.0);
  const double total = end_of(rows), below = lane_height * static_cast<double>(lanes.size()), memory = 110;
  double most = 1;
  for (const launch_row& r : rows) most = std::max(most, r.live_bytes);
  auto x_of = [&](double ms) { return lane_left + ms / total * time_width; };
  std::string svg = fmt::format("<div class='wide'><svg viewBox='0 0 {0} {1}' style='width:{0}px'>",
                                lane_left + time_width + 60, below + memory + 30);
  for (std::size_t i = 0; i < lanes.size(); ++i)
    svg += fmt::format("<text x='0' y='{:.1f}'>{}</text><line class='grid' x1='0' x2='{}' y1='{}' y2='{}'/>",
                       lane_height * static_cast<double>(i) + 15, html_text(lanes[i].substr(0, 30)),
                       lane_left + time_width, lane_height * static_cast<double>(i + 1),
                       lane_height * static_cast<double>(i + 1));
  for (int i = 0; i <= 8; ++i) {
    const double ms = total * i / 8;
    svg += fmt::format(
        "<line class='grid' x1='{0:.1f}' x2='{0:.1f}' y1='0' y2='{1}'/><text x='{0:.1f}' y='{2}' "
        "text-anchor='middle'>{3:.3g} ms</text>",
        x_of(ms), below + memory, below + memory + 18, ms);
  }
  std::string path;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const launch_row& r = rows[i];
    const auto lane = static_cast<double>(std::ranges::find(lanes, r.symbol) - lanes.begin());
    svg += fmt::format(
        "<a href='#launch-{0}'><rect id='bar-{0}' x='{1:.1f}' y='{2:.1f}' width='{3:.2f}' height='{4}'>"
        "<title>{5}&#10;{6}, {7:.4f} ms</title></rect></a>",
        i, x_of(r.begin_ms), lane_height * lane + 3, std::max(r.ms / total * time_width, 1.0), lane_height - 6,
        html_text(r.label()), html_text(r.symbol), r.ms);
    path += fmt::format("{}{:.1f},{:.1f} {:.1f},{:.1f}", path.empty() ? "" : " ", x_of(r.begin_ms),
                        below + memory - r.live_bytes / most * (memory - 20), x_of(r.begin_ms + r.ms),
                        below + memory - r.live_bytes / most * (memory - 20));
  }
  return svg + fmt::format(
                   "<text x='0' y='{0:.1f}'>memory in use</text><text x='0' y='{1:.1f}'>at most {2:.2f} MB</text>"
                   "<polyline class='memory' points='{3}'/></svg></div>",
                   below + 35, below + 52, most / 1e6, path);
}

// Operations a second over operations per byte, both axes logarithmic. The roofs are the fastest that any launch of
// this run moved bytes and computed: what is far below both has room.
std::string roofline(const std::vector<launch_row>& rows) {
  struct point {
    std::size_t row;
    double intensity, rate;  // FLOP/byte, GFLOP/s
  };
  std::vector<point> points;
  double bandwidth = 0, peak = 0, least = 1e30, most = 0, lowest = 1e30;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const launch_row& r = rows[i];
    if (r.ms <= 0 || r.bytes <= 0) continue;
    bandwidth = std::max(bandwidth, r.bytes / r.ms / 1e6);
    if (r.operations <= 0) continue;
    points.push_back({i, r.operations / r.bytes, r.operations / r.ms / 1e6});
    peak = std::max(peak, points.back().rate);
    lowest = std::min(lowest, points.back().rate);
    least = std::min(least, points.back().intensity);
    most = std::max(most, points.back().intensity);
  }
  if (points.empty()) return "<p>No launch of this run has operations that are known.</p>";
  constexpr double plot_height = 320, top = 10;
  const double x_first = std::floor(std::log10(least)), x_last = std::floor(std::log10(most)) + 1;
  const double y_first = std::floor(std::log10(lowest)), y_last = std::floor(std::log10(peak)) + 1;
  auto x_of = [&](double v) { return left + (std::log10(v) - x_first) / (x_last - x_first) * (width - left - 10); };
  auto y_at = [&](double v) {
    return top + (1 - (std::log10(v) - y_first) / (y_last - y_first)) * (plot_height - bottom - top);
  };
  std::string svg = fmt::format("<svg viewBox='0 0 {} {}' role='img'>", width, plot_height);
  for (double e = x_first; e <= x_last; ++e)
    svg += fmt::format(
        "<line class='grid' x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}'/><text x='{0:.1f}' y='{3}' "
        "text-anchor='{5}'>{4:g} FLOP/byte</text>",
        x_of(std::pow(10, e)), top, plot_height - bottom, plot_height - 8, std::pow(10, e),
        e == x_last ? "end" : "middle");
  for (double e = y_first; e <= y_last; ++e)
    svg += fmt::format(
        "<line class='grid' x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}'/><text x='{3}' y='{4:.1f}' "
        "text-anchor='end'>{5:g} {6}{7}</text>",
        left, width, y_at(std::pow(10, e)), left - 4, y_at(std::pow(10, e)) + 4, std::pow(10, e < 3 ? e : e - 3),
        e < 3 ? "G" : "T", e == y_last ? "/s" : "");
  // The roof bends where both limits meet. It starts where it enters the picture.
  const double bend = std::clamp(peak / bandwidth, std::pow(10, x_first), std::pow(10, x_last));
  const double begin = std::max(std::pow(10, x_first), std::pow(10, y_first) / bandwidth);
  if (begin < bend)
    svg += fmt::format("<line class='roof' x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}'/>", x_of(begin),
                       y_at(begin * bandwidth), x_of(bend), y_at(std::min(peak, bend * bandwidth)));
  svg += fmt::format("<line class='roof' x1='{:.1f}' y1='{:.1f}' x2='{}' y2='{:.1f}'/>", x_of(bend), y_at(peak),
                     width - 10, y_at(peak));
  const double total = end_of(rows);
  for (const point& p : points) {
    const launch_row& r = rows[p.row];
    svg += fmt::format(
        "<a href='#launch-{}'><circle class='launch' cx='{:.1f}' cy='{:.1f}' r='{:.1f}'><title>{}&#10;{}, {:.4f} "
        "ms&#10;{:.1f} GFLOP/s at {:.2f} FLOP/byte</title></circle></a>",
        p.row, x_of(p.intensity), y_at(p.rate), 3 + 12 * std::sqrt(r.ms / total), html_text(r.label()),
        html_text(r.symbol), r.ms, p.rate, p.intensity);
  }
  return svg +
         fmt::format(
             "</svg><p>Roofs: {:.1f} GFLOP/s and {:.1f} GB/s, the most that a launch of this run reached. The larger "
             "a circle, the more time its launch takes. Bytes are those of its tensors, which may be in a cache.</p>",
             peak, bandwidth);
}

// Every launch, the slowest first. A number leads to its bar in the timeline.
std::string launch_table(const std::vector<launch_row>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return rows[a].ms > rows[b].ms; });
  const double total = end_of(rows);
  std::string html =
      "<div class='wide'><table class='launches'><tr><th>launch<th>nodes of the "
      "model<th>kernel<th>ms<th>share<th>MB<th>GB/s<th>GFLOP/s</tr>";
  for (std::size_t i : order) {
    const launch_row& r = rows[i];
    const double share = r.ms / total * 100;
    html += fmt::format(
        "<tr id='launch-{0}'><td><a href='#bar-{0}'>{0}</a><td>{1}<td><code>{2}</code><td>{3:.4f}<td>{4:.1f} %<div "
        "class='bar' style='width:{4:.1f}%'></div><td>{5:.3f}<td>{6:.1f}<td>{7}</tr>",
        i, html_text(r.origin), html_text(r.symbol), r.ms, share, r.bytes / 1e6, r.ms > 0 ? r.bytes / r.ms / 1e6 : 0.0,
        r.operations > 0 && r.ms > 0 ? fmt::format("{:.1f}", r.operations / r.ms / 1e6) : "");
  }
  return html + "</table></div>";
}

struct figure {
  const char* key;
  const char* words;
  double scale;
  const char* unit;
};
constexpr std::array figure_rows{figure{"read_ms", "reading the file", 1, "ms"},
                                 figure{"finalize_ms", "finalizing kernels", 1, "ms"},
                                 figure{"load_ms", "loading and packing weights", 1, "ms"},
                                 figure{"first_run_ms", "first run", 1, "ms"},
                                 figure{"runs", "measured runs", 1, ""},
                                 figure{"p50_ms", "median of the runs", 1, "ms"},
                                 figure{"p90_ms", "90 % of the runs took at most", 1, "ms"},
                                 figure{"p99_ms", "99 % of the runs took at most", 1, "ms"},
                                 figure{"min_ms", "fastest run", 1, "ms"},
                                 figure{"runs_per_second", "runs per second", 1, ""},
                                 figure{"kernels", "different kernels", 1, ""},
                                 figure{"launches", "launches of a run", 1, ""},
                                 figure{"constant_bytes", "weights", 1e-6, "MB"},
                                 figure{"arena_bytes", "memory for intermediate values", 1e-6, "MB"},
                                 figure{"peak_memory_bytes", "peak memory of the process", 1e-6, "MB"}};

std::string figures(const nlohmann::ordered_json& document) {
  std::string html = "<table>";
  for (const figure& f : figure_rows)
    html += fmt::format("<tr><td>{}<td>{:.4g} {}</tr>", f.words, document[f.key].get<double>() * f.scale, f.unit);
  return html + "</table>";
}

// Says how many kernels came from the cache, and which command explains the misses.
std::string cache_text(const nlohmann::ordered_json& document) {
  const auto& cache = document["cache"];
  const auto hits = cache["hits"].get<std::int64_t>(), misses = cache["misses"].get<std::int64_t>();
  if (misses == 0) return fmt::format("<p>All {} kernels came from the cache.</p>", hits);
  return fmt::format(
      "<p>{} kernels came from the cache, {} were compiled. <code>kiln cache explain {}</code> says which field of the "
      "key differs, if a kernel is missing again.</p>",
      hits, misses, html_text(document["file"].get<std::string>()));
}

constexpr std::string_view style =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}"
    "h2{margin-top:2em}svg{width:100%}svg text{font-size:11px;fill:#555}.grid{stroke:#ddd}circle,rect{fill:#c2410c}"
    "rect{stroke:#fff;stroke-width:.6}rect:hover,rect:target{fill:#1d4ed8}tr:target{background:#dbeafe}.memory{fill:"
    "none;stroke:#1d4ed8;stroke-width:2}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;"
    "padding:2px 10px 2px 0;border-bottom:1px solid #eee}.bar{background:#c2410c;height:4px}"
    ".roof{stroke:#1d4ed8;stroke-width:2;stroke-dasharray:6 4}.launch{fill-opacity:.6}.launch:hover{fill:#1d4ed8}"
    ".launches td:nth-child(5){min-width:6em}.launches td:nth-child(2){overflow-wrap:anywhere}";

}  // namespace

void write_html_report(const std::filesystem::path& file, const nlohmann::ordered_json& document,
                       const std::vector<double>& runs_ms) {
  std::string title = html_text(document["file"].get<std::string>());
  const std::vector<launch_row> rows = rows_of(document["per_kernel"]);
  std::string page = fmt::format(
      "<!doctype html><html lang='en'><meta charset='utf-8'><title>{0}</title><style>{1}</style><h1>{0}</h1><p>{2}</p>"
      "{3}{4}<h2>Runs</h2>{5}<h2>Distribution</h2>{6}<h2>Launches over time</h2>"
      "<p>One run with every launch timed on its own. Point at a bar to see the nodes of the model that it computes; "
      "follow it to its row. The line is the memory of intermediate values that are still needed.</p>{7}"
      "<h2>Roofline</h2>{9}<h2>Launches</h2><p>MB is the size of the tensors that a launch reads and writes, GB/s "
      "that size over its time. "
      "</p>{8}</html>\n",
      title, style, html_text(document["device_description"].get<std::string>()) + threads_text(document),
      figures(document), cache_text(document), runs_plot(runs_ms), histogram(runs_ms), timeline(rows),
      launch_table(rows), roofline(rows));
  container::output_file out(file);
  out.write(std::as_bytes(std::span(page)));
  out.commit();
}

}  // namespace kiln::tools
