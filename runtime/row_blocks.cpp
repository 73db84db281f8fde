#include "runtime/row_blocks.hpp"

#include <algorithm>

#include "ir/error.hpp"
#include "runtime/arena.hpp"

namespace kiln {

std::int64_t count_rows(const row_kernel& kernel, std::span<const std::size_t> inputs,
                        std::span<const std::size_t> outputs, const std::string& what) {
  auto require = [&](bool holds) {
    if (!holds)
      throw error(error_kind::corrupted, what + ": its tensors do not fit its row kernel; finalize the program again");
  };
  require(inputs.size() == kernel.inputs.size() && outputs.size() == kernel.outputs.size());
  std::int64_t rows = -1;
  auto check = [&](std::size_t size, const row_part& part) {
    const auto bytes = static_cast<std::int64_t>(size);
    if (part.per_row && part.bytes && rows < 0) rows = bytes / part.bytes;
    require(bytes == (part.per_row && part.bytes ? rows * part.bytes : part.bytes));
  };
  for (std::size_t o = 0; o < outputs.size(); ++o) check(outputs[o], kernel.outputs[o]);
  for (std::size_t k = 0; k < inputs.size(); ++k) check(inputs[k], kernel.inputs[k]);
  return std::max<std::int64_t>(rows, 0);
}

namespace {

// The cheapest cover of some rows.
class cheapest_cover {
 public:
  explicit cheapest_cover(const row_kernel& kernel)
      : kernel_(kernel),
        has_costs_(std::ranges::all_of(kernel.versions, [](const row_version& v) { return v.cost > 0; })) {}

  enum class use : std::uint8_t { skip, full, filled };
  struct choice {
    use how;
    std::int64_t cost;
  };
  // For `left` rows with versions from `v` on: leave this version out, use as many whole blocks as there are, or also
  // one that is filled up with copies of rows.
  choice best(std::size_t v, std::int64_t left) const {
    if (left == 0) return {use::skip, 0};
    const std::int64_t block = kernel_.versions[v].rows, count = left / block, rest = left % block;
    const bool last = v + 1 == kernel_.versions.size();
    choice found{use::skip, unlimited};
    const auto consider = [&](use how, std::int64_t cost) {
      if (cost < found.cost) found = {how, cost};
    };
    const std::int64_t cost = has_costs_ ? kernel_.versions[v].cost : block;
    if (count && (!last || rest == 0)) consider(use::full, count * cost + (rest ? best(v + 1, rest).cost : 0));
    if (!last && (!count || has_costs_)) consider(use::skip, best(v + 1, left).cost);
    if (rest && has_costs_) consider(use::filled, (count + 1) * cost);
    return found;
  }

 private:
  static constexpr std::int64_t unlimited = INT64_MAX / 2;
  const row_kernel& kernel_;
  bool has_costs_;
};

}  // namespace

std::vector<row_blocks> cover_rows(const row_kernel& kernel, std::int64_t rows) {
  std::vector<row_blocks> result;
  cover_rows(kernel, rows, result);
  return result;
}

void cover_rows(const row_kernel& kernel, std::int64_t rows, std::vector<row_blocks>& result) {
  result.clear();
  const cheapest_cover cover(kernel);
  std::int64_t first = 0;
  for (std::size_t v = 0; v < kernel.versions.size() && first < rows; ++v) {
    const auto how = cover.best(v, rows - first).how;
    if (how == cheapest_cover::use::skip) continue;
    const std::int64_t block = kernel.versions[v].rows, count = (rows - first) / block;
    if (count) result.push_back({v, first, block, count, 0});
    first += count * block;
    if (how == cheapest_cover::use::full) continue;
    result.push_back({v, first, block, 1, rows - first});
    first = rows;
  }
}

row_launches launches_per_block(const row_kernel& kernel, const native_kernel& version) {
  row_launches result{std::vector<bool>(version.launches.size()), std::vector<bool>(version.scratch.size())};
  // True for scratch that is written by a launch which runs once for all blocks.
  std::vector<bool> common(version.scratch.size());
  for (std::size_t l = 0; l < version.launches.size(); ++l) {
    const auto& arguments = version.launches[l].arguments;
    const bool per_block = std::ranges::any_of(arguments, [&](const launch_argument& a) {
      switch (a.kind) {
        case buffer_kind::input: return kernel.inputs[a.index].per_row;
        case buffer_kind::output: return true;
        // Refused by ir/row_kernel.cpp.
        case buffer_kind::sizes: return false;
        case buffer_kind::scratch: break;
      }
      return static_cast<bool>(result.scratch[a.index]);
    });
    result.launches[l] = per_block;
    for (const launch_argument& a : arguments) {
      if (a.kind != buffer_kind::scratch) continue;
      if (!per_block) common[a.index] = true;
      else if (!common[a.index]) result.scratch[a.index] = true;
    }
  }
  return result;
}

std::int64_t scratch_stride(const scratch_buffer& scratch) {
  constexpr std::int64_t line = static_cast<std::int64_t>(arena_alignment);
  return (scratch.bytes + line - 1) / line * line;
}

std::int64_t items_at_once(const launch& what, const row_kernel& kernel, const native_kernel& version,
                           const row_launches& blocked, const row_blocks& blocks) {
  constexpr std::int64_t cached_bytes = 256 << 10;
  std::int64_t shared = 0, own = 0;
  for (const launch_argument& a : what.arguments) {
    const std::int64_t stride = part_of(a, kernel, version, blocked, blocks).stride;
    own += stride;
    if (stride == 0)
      shared += a.kind == buffer_kind::scratch
                    ? version.scratch[a.index].bytes
                    : (a.kind == buffer_kind::input ? kernel.inputs : kernel.outputs)[a.index].bytes;
  }
  return shared <= own || blocks.count == 1 ? 0 : std::max<std::int64_t>(1, what.grid * cached_bytes / shared);
}

block_part part_of(const launch_argument& a, const row_kernel& kernel, const native_kernel& version,
                   const row_launches& blocked, const row_blocks& blocks) {
  if (a.kind == buffer_kind::scratch)
    return {0, blocked.scratch[a.index] ? scratch_stride(version.scratch[a.index]) : 0};
  const row_part& part = (a.kind == buffer_kind::input ? kernel.inputs : kernel.outputs)[a.index];
  if (!part.per_row) return {};
  return {blocks.first_row * part.bytes, blocks.rows * part.bytes};
}

}  // namespace kiln
