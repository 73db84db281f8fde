// Implements broadcast, transpose, slice and pad as one copy. A table gives the source of the elements along every axis
// of the output.
#include "ir/ops/movement.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "ir/error.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::min();

// For each output axis and each index along it: its contribution to the source offset, or `nowhere` for fill.
using source_table = std::vector<std::vector<std::int64_t>>;

// The common difference of neighbouring entries if there is one and the first entry is 0.
std::optional<std::int64_t> step_of(const std::vector<std::int64_t>& entries) {
  if (entries.empty() || entries[0] != 0) return std::nullopt;
  const std::int64_t step = entries.size() > 1 ? entries[1] : 0;
  if (step == nowhere) return std::nullopt;
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i] != static_cast<std::int64_t>(i) * step) return std::nullopt;
  return step;
}

// Merges adjacent axes that together walk the source in equal steps. For example, a vector broadcast over a convolution
// window becomes one run per element.
source_table coalesced(source_table table) {
  for (std::size_t axis = table.size() - 1; axis-- > 0;) {
    auto& outer = table[axis];
    const auto& inner = table[axis + 1];
    const auto step = step_of(inner), stride = step_of(outer);
    const auto length = static_cast<std::int64_t>(inner.size());
    if (!step || !stride || (outer.size() > 1 && *stride != *step * length)) continue;
    std::vector<std::int64_t> both(outer.size() * inner.size());
    for (std::size_t i = 0; i < both.size(); ++i) both[i] = static_cast<std::int64_t>(i) * *step;
    outer = std::move(both);
    table.erase(table.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  }
  return table;
}

template <class Word>
void copy(const source_table& table, std::optional<std::int64_t> last_step, std::size_t axis, const Word* from,
          std::int64_t base, Word*& to, Word fill) {
  const auto& sources = table[axis];
  if (axis + 1 < table.size()) {
    for (std::int64_t source : sources)
      copy(table, last_step, axis + 1, from, base == nowhere || source == nowhere ? nowhere : base + source, to, fill);
  } else if (base == nowhere || last_step == 0) {
    to = std::fill_n(to, sources.size(), base == nowhere ? fill : from[base]);
  } else if (last_step == 1) {
    to = std::copy_n(from + base, sources.size(), to);
  } else {
    for (std::int64_t source : sources) *to++ = source == nowhere ? fill : from[base + source];
  }
}

// `fill` is one element in storage form, padded with zeros to at least 8 bytes.
literal moved(const literal& input, shape out, source_table table,
              const std::vector<std::byte>& fill = std::vector<std::byte>(8)) {
  literal from = unpacked(input);
  shape wide = out.with_type(from.type().type);
  std::vector<std::byte> bytes(wide.bytes());
  if (table.empty()) table.push_back({0});  // rank 0
  table = coalesced(std::move(table));
  const std::optional<std::int64_t> last_step = step_of(table.back());
  auto run = [&](auto word) {
    using Word = decltype(word);
    Word filling;
    std::memcpy(&filling, fill.data(), sizeof(Word));
    Word* to = data<Word>(bytes);
    if (!bytes.empty()) copy(table, last_step, 0, from.as<Word>().data(), 0, to, filling);
  };
  switch (storage_bits(wide.type)) {
    case 8: run(std::uint8_t()); break;
    case 16: run(std::uint16_t()); break;
    case 32: run(std::uint32_t()); break;
    default: run(std::uint64_t()); break;
  }
  return packed(out.type, literal(std::move(wide), std::move(bytes)));
}

// Returns `count` entries: first, first + step, ..., each times `stride`.
std::vector<std::int64_t> ramp(std::int64_t first, std::int64_t step, std::int64_t count, std::int64_t stride) {
  std::vector<std::int64_t> entries(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) entries[static_cast<std::size_t>(i)] = (first + i * step) * stride;
  return entries;
}

// Maps a padded index (possibly outside) to the element of an axis of `length` that it shows.
std::int64_t padding_source(pad_mode mode, std::int64_t index, std::int64_t length) {
  if (index >= 0 && index < length) return index;
  auto remainder = [](std::int64_t a, std::int64_t b) { return (a % b + b) % b; };
  switch (mode) {
    case pad_mode::constant_: return nowhere;
    case pad_mode::edge: return index < 0 ? 0 : length - 1;
    case pad_mode::wrap: return remainder(index, length);
    case pad_mode::reflect: {
      if (length == 1) return 0;
      std::int64_t period = 2 * (length - 1), at = remainder(index, period);
      return at < length ? at : period - at;
    }
  }
  return nowhere;
}

}  // namespace

std::vector<literal> broadcast::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  auto to = out.static_dims(), from = inputs[0].type().static_dims();
  auto strides = row_major_strides(from);
  source_table table;
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::size_t missing = to.size() - from.size();
    bool stretched = i < missing || from[i - missing] != to[i];
    table.push_back(ramp(0, stretched ? 0 : 1, to[i], stretched ? 0 : strides[i - missing]));
  }
  return {moved(inputs[0], std::move(out), std::move(table))};
}

std::vector<literal> reshape::evaluate(std::span<const literal> inputs) const {
  return {inputs[0].reshaped(output_shapes(*this, inputs)[0].dims)};
}

std::vector<literal> transpose::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  auto from = inputs[0].type().static_dims();
  auto strides = row_major_strides(from);
  source_table table;
  for (std::int64_t axis : permutation)
    table.push_back(ramp(0, 1, from[static_cast<std::size_t>(axis)], strides[static_cast<std::size_t>(axis)]));
  return {moved(inputs[0], std::move(out), std::move(table))};
}

std::vector<literal> slice::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  auto to = out.static_dims();
  auto strides = row_major_strides(inputs[0].type().static_dims());
  source_table table;
  for (std::size_t i = 0; i < to.size(); ++i) table.push_back(ramp(starts[i], steps[i], to[i], strides[i]));
  return {moved(inputs[0], std::move(out), std::move(table))};
}

std::vector<literal> pad::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  auto to = out.static_dims(), from = inputs[0].type().static_dims();
  auto strides = row_major_strides(from);
  source_table table;
  for (std::size_t i = 0; i < to.size(); ++i) {
    auto& entries = table.emplace_back();
    for (std::int64_t at = 0; at < to[i]; ++at) {
      std::int64_t source = padding_source(mode, at - before[i], from[i]);
      entries.push_back(source == nowhere ? nowhere : source * strides[i]);
    }
  }
  std::vector<std::byte> filling(8);
  store_element(unpacked_type(out.type), filling.data(), 0, fill);
  return {moved(inputs[0], std::move(out), std::move(table), filling)};
}

std::vector<literal> concat::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  shape wide = out.with_type(unpacked_type(out.type));
  std::vector<std::byte> bytes(wide.bytes());
  auto along = normalize_axis(axis, out.rank());
  axis_view whole(out.static_dims(), along);
  std::int64_t row_bytes = whole.inner * storage_bits(wide.type) / 8, start = 0;
  for (const literal& input : inputs) {
    literal from = unpacked(input);
    axis_view part(from.type().static_dims(), along);
    std::int64_t block = part.length * row_bytes;
    if (block == 0) continue;
    for (std::int64_t o = 0; o < part.outer; ++o)
      std::memcpy(bytes.data() + (o * whole.length + start) * row_bytes, from.bytes().data() + o * block,
                  static_cast<std::size_t>(block));
    start += part.length;
  }
  return {packed(out.type, literal(std::move(wide), std::move(bytes)))};
}

std::vector<literal> iota::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  std::vector<std::byte> bytes(out.bytes());
  axis_view view(out.static_dims(), normalize_axis(axis, out.rank()));
  visit_type(type, [&](auto format) {
    using Format = decltype(format);
    auto* to = data<typename Format::storage>(bytes);
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t i = 0; i < view.length; ++i) {
        auto element = Format::store(cast<typename Format::compute>(i));
        for (std::int64_t n = 0; n < view.inner; ++n) *to++ = element;
      }
  });
  return {literal(std::move(out), std::move(bytes))};
}

}  // namespace kiln
