#include "tools/launch_trace.hpp"

#include <map>
#include <span>
#include <string>

#include "ir/container/files.hpp"
#include "tools/terminal.hpp"

namespace kiln::tools {

void write_launch_trace(const std::filesystem::path& file, const nlohmann::ordered_json& document) {
  using json = nlohmann::ordered_json;
  auto events = json::array();
  events.push_back(
      {{"ph", "M"}, {"name", "process_name"}, {"pid", 1}, {"args", {{"name", document["device_description"]}}}});
  std::map<std::string, std::size_t> lanes;  // symbol → thread of the trace
  double now_us = 0;
  for (const auto& launch : document["per_kernel"]) {
    const auto symbol = launch["symbol"].get<std::string>();
    auto [lane, fresh] = lanes.emplace(symbol, lanes.size() + 1);
    if (fresh)
      events.push_back(
          {{"ph", "M"}, {"name", "thread_name"}, {"pid", 1}, {"tid", lane->second}, {"args", {{"name", symbol}}}});
    const double us = launch["ms"].get<double>() * 1000;
    const auto origin = launch["origin"].get<std::string>();
    events.push_back({{"ph", "C"},
                      {"name", "arena bytes in use"},
                      {"pid", 1},
                      {"ts", now_us},
                      {"args", {{"bytes", launch["live_bytes"]}}}});
    events.push_back({{"ph", "X"},
                      {"name", origin.empty() ? symbol : origin},
                      {"cat", "launch"},
                      {"pid", 1},
                      {"tid", lane->second},
                      {"ts", now_us},
                      {"dur", us},
                      {"args",
                       {{"kernel", symbol},
                        {"payload", launch["payload"]},
                        {"launches", launch["launches"]},
                        {"bytes", launch["bytes"]}}}});
    now_us += us;
  }
  const std::string text = json_text({{"displayTimeUnit", "ms"}, {"traceEvents", events}});
  container::output_file out(file);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
}

}  // namespace kiln::tools
