#include "tools/size_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "ir/error.hpp"
#include "jit/tuning/statistics.hpp"
#include "runtime/io_buffers.hpp"

namespace kiln::tools {
namespace {

using clock = std::chrono::steady_clock;

std::int64_t parse_size(std::string_view digits, const std::string& text) {
  std::int64_t size = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (code != std::errc{} || end != digits.data() + digits.size() || size < 0)
    throw error(error_kind::usage, fmt::format("--sweep {}: it is not NAME=MIN:MAX or NAME=N,N,...", text));
  return size;
}

// Sorted milliseconds of the runs.
std::vector<double> time_runs(const opened_model& model, int runs, int warmup) {
  const executable& exe = model.executable();
  execution_context context = exe.make_context(model.instance().graphs().options());
  io_buffers tensors(exe);
  tensors.upload(model.inputs());
  for (int i = 0; i < warmup || context.measuring(); ++i) exe.run(context, tensors.inputs(), tensors.outputs());
  model.instance().graphs().keep(context);
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto begin = clock::now();
    exe.run(context, tensors.inputs(), tensors.outputs());
    times.push_back(std::chrono::duration<double, std::milli>(clock::now() - begin).count());
  }
  std::ranges::sort(times);
  return times;
}

}  // namespace

size_sweep parse_sweep(const std::string& text) {
  const auto [name, rest] = split_assignment(text, "--sweep");
  size_sweep sweep{name, {}};
  if (const std::size_t colon = rest.find(':'); colon != std::string::npos) {
    const std::int64_t least = parse_size(std::string_view(rest).substr(0, colon), text),
                       most = parse_size(std::string_view(rest).substr(colon + 1), text);
    if (least > most) throw error(error_kind::usage, fmt::format("--sweep {}: {} is more than {}", text, least, most));
    sweep.sizes.push_back(least);
    for (std::int64_t power = 1; power < most && power <= INT64_MAX / 2; power *= 2)
      if (power > least) sweep.sizes.push_back(power);
    if (most > least) sweep.sizes.push_back(most);
    return sweep;
  }
  for (std::size_t begin = 0; begin <= rest.size();) {
    const std::size_t end = std::min(rest.find(',', begin), rest.size());
    sweep.sizes.push_back(parse_size(std::string_view(rest).substr(begin, end - begin), text));
    begin = end + 1;
  }
  return sweep;
}

model_options at_size(model_options options, const size_sweep& sweep, std::int64_t size) {
  options.dims.push_back(fmt::format("{}={}", sweep.dimension, size));
  return options;
}

nlohmann::ordered_json measure_sizes(opened_model& model, const model_options& options, const size_sweep& sweep,
                                     int runs, int warmup) {
  auto rows = nlohmann::ordered_json::array();
  for (const std::int64_t size : sweep.sizes) {
    if (!rows.empty()) model.move_to(at_size(options, sweep, size));
    model.run_once();
    const std::vector<double> times = time_runs(model, runs, warmup);
    rows.push_back({{"size", size},
                    {"finalize_ms", model.instance().finalize_ms()},
                    {"compiled", model.instance().report().misses},
                    {"first_run_ms", model.first_run_ms()},
                    {"p50_ms", percentile(times, 0.5)},
                    {"p90_ms", percentile(times, 0.9)},
                    {"p99_ms", percentile(times, 0.99)},
                    {"min_ms", times.front()}});
  }
  return {{"dimension", sweep.dimension}, {"sizes", std::move(rows)}};
}

void print_sizes(const nlohmann::ordered_json& sweep) {
  print("  {:>12} {:>12} {:>9} {:>13} {:>10} {:>10} {:>10}\n", sweep["dimension"].get<std::string>(), "finalize ms",
        "compiled", "first run ms", "median ms", "99 %", "least");
  for (const auto& row : sweep["sizes"])
    print("  {:>12} {:>12.1f} {:>9} {:>13.3f} {:>10.3f} {:>10.3f} {:>10.3f}\n", row["size"].get<std::int64_t>(),
          row["finalize_ms"].get<double>(), row["compiled"].get<std::int64_t>(), row["first_run_ms"].get<double>(),
          row["p50_ms"].get<double>(), row["p99_ms"].get<double>(), row["min_ms"].get<double>());
}

}  // namespace kiln::tools
