#include "tools/device_peaks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "ir/error.hpp"

namespace kiln::tools {
namespace {

struct sheet_row {
  std::string_view target;
  // Of the product: operations a second, and its compute units.
  double rate;
  unsigned units;
};

// Dense f16, without sparsity.
constexpr auto data_sheets = std::to_array<sheet_row>({
    {"sm_75", 65e12, 40},       // T4
    {"sm_80", 312e12, 108},     // A100
    {"sm_90", 989e12, 132},     // H100 SXM, H200
    {"sm_100", 2250e12, 148},   // B200
    {"gfx908", 184.6e12, 120},  // MI100
    {"gfx90a", 191.5e12, 110},  // a die of MI250X
    {"gfx942", 1307e12, 304},   // MI300X
    {"gfx950", 2517e12, 256},   // MI355X
    {"gfx1100", 122.8e12, 96},  // RX 7900 XTX
});

double measure_copy(device& of) {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  constexpr int turns = 5, copies = 4;
  try {
    const device_memory from = of.allocate(bytes), to = of.allocate(bytes);
    of.fill_zero(from.data(), bytes);
    const auto begin = of.make_event(), end = of.make_event();
    double least = std::numeric_limits<double>::max();
    for (int turn = 0; turn < turns; ++turn) {
      begin->record();
      for (int i = 0; i < copies; ++i) of.copy(to.data(), from.data(), bytes);
      end->record();
      end->synchronize();
      least = std::min(least, end->milliseconds_since(*begin));
    }
    return least > 0 ? 2.0 * copies * static_cast<double>(bytes) / least * 1e3 : 0;
  } catch (const error&) {
    return 0;
  }
}

nlohmann::ordered_json share(const nlohmann::ordered_json& amount, double ms, double peak) {
  constexpr double most = 1.05;
  if (!amount.is_number() || peak <= 0 || ms <= 0) return nullptr;
  const double of_peak = amount.get<double>() / ms * 1e3 / peak;
  return of_peak > most ? nlohmann::ordered_json() : nlohmann::ordered_json(of_peak);
}

}  // namespace

device_peaks measure_peaks(device& of) {
  device_peaks peaks;
  const device_info& info = of.info();
  if (info.host_memory) return peaks;
  peaks.bandwidth = measure_copy(of);
  const auto row = std::ranges::find(data_sheets, info.target, &sheet_row::target);
  if (row != data_sheets.end() && info.multiprocessors)
    peaks.matrix_rate = row->rate / row->units * info.multiprocessors;
  return peaks;
}

void add_shares(nlohmann::ordered_json& per_kernel, const device_peaks& peaks) {
  constexpr double much_time = 0.05, little = 0.1;
  double all = 0;
  for (const auto& row : per_kernel) all += row["ms"].get<double>();
  for (auto& row : per_kernel) {
    const double ms = row["ms"].get<double>();
    row["bandwidth_share"] = share(row["bytes"], ms, peaks.bandwidth);
    row["matrix_share"] = share(row["operations"], ms, peaks.matrix_rate);
    const auto is_little = [&](const char* key) { return row[key].is_number() && row[key].get<double>() < little; };
    row["far_from_peaks"] = ms > much_time * all && is_little("bandwidth_share") &&
                            (row["matrix_share"].is_null() || is_little("matrix_share"));
  }
}

std::string shares_text(const nlohmann::ordered_json& row) {
  std::string text;
  for (const auto& [key, what] : {std::pair{"bandwidth_share", "bandwidth"}, std::pair{"matrix_share", "matrix units"}})
    if (row[key].is_number())
      text += fmt::format("{}{:.0f} % of {}", text.empty() ? "" : ", ", 100 * row[key].get<double>(), what);
  return text;
}

}  // namespace kiln::tools
