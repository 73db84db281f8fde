#include "mlir_bridge/kinds/attention/gpu/row_division.hpp"

#include <algorithm>
#include <array>

namespace kiln::gpu {

namespace {

// Times of a workgroup with 0, 1, 2 and 3 consumers, measured with heads of 64 on an H100 and an H200: three consumers
// take 1.28 times as long as two for 1.5 times the rows.
constexpr std::array<std::int64_t, 4> times{0, 80, 100, 128};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::int64_t time_of(const row_division& division, std::int64_t groups, std::int64_t heads, std::int64_t units) {
  const std::int64_t in_short = division.short_tiles * division.short_consumers,
                     longs = ceil_div(groups - in_short, division.consumers) * heads,
                     shorts = division.short_tiles * heads,
                     of_long = times[static_cast<std::size_t>(division.consumers)],
                     of_short = times[static_cast<std::size_t>(division.short_consumers)];
  // After whole rounds of long workgroups, `late` units have one more of them, and the others begin with short ones.
  const std::int64_t late = longs % units, early_begin = longs / units * of_long,
                     late_begin = early_begin + (late ? of_long : 0);
  std::int64_t end = late_begin;
  if (shorts == 0) return end;
  for (;;) {
    const std::int64_t of_early = (end - early_begin) / of_short, of_late = (end - late_begin) / of_short;
    if ((units - late) * of_early + late * of_late >= shorts) return end;
    end = std::min(early_begin + (of_early + 1) * of_short, late_begin + (of_late + 1) * of_short);
  }
}

row_division divide_rows(std::int64_t groups, std::int64_t heads, std::int64_t units) {
  row_division best;
  std::int64_t best_time = time_of(best, groups, heads, units);
  const auto consider = [&](const row_division& division) {
    const std::int64_t time = time_of(division, groups, heads, units);
    if (time < best_time) best = division, best_time = time;
  };
  consider({.consumers = 3});
  for (const std::int64_t consumers : {2, 1})
    for (std::int64_t tiles = 1; tiles * consumers <= groups - 3; ++tiles)
      if ((groups - tiles * consumers) % 3 == 0)
        consider({.consumers = 3, .short_tiles = tiles, .short_consumers = consumers});
  return best;
}

}  // namespace kiln::gpu
