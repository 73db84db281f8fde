#include "mlir_bridge/kinds/dot/cpu/weights_ahead.hpp"

#include "ir/ops/all.hpp"

namespace kiln::cpu {

namespace {

// Distance in bytes from the codes that are read to those that are prefetched: enough to cover the latency of memory,
// and no more than a part of the second-level cache.
constexpr std::int64_t least_ahead = 4 << 10, most_ahead = 64 << 10, line_bytes = 64;

// Returns the distance for groups of columns of this many bytes: whole groups, or a place in the same long column.
std::int64_t bytes_ahead(std::int64_t group) {
  return group > most_ahead ? least_ahead : (least_ahead + group - 1) / group * group;
}

// Returns the buffer with the `count` numbers of v, one after the other, if v is a parameter that is perhaps reshaped,
// broadcast or converted; otherwise nullopt.
std::optional<buffer> memory_of(const kernel_emitter& e, value v, std::int64_t count) {
  while (!e.in_memory(v) || v.type().element_count() != count || storage_bits(v.type().type) < 8) {
    const operation& op = v.producer->op();
    if (!op.is<broadcast>() && !op.is<convert>() && !op.is<reshape>()) return std::nullopt;
    v = v.producer->inputs()[0];
  }
  return e.in_memory(v);
}

}  // namespace

weights_ahead::weights_ahead(kernel_emitter& e, const dot_sizes& sizes, const block_weights& weights,
                             std::int64_t columns)
    : e_(e),
      codes_(*e.in_memory(weights.codes)),
      columns_(columns),
      blocks_(sizes.k / weights.block),
      column_bytes_(sizes.k * storage_bits(weights.codes.type().type) / 8),
      ahead_(bytes_ahead(columns * column_bytes_)) {
  if (columns * column_bytes_ > most_ahead) return;
  for (const std::optional<value>& v : {std::optional(weights.scales), weights.offsets})
    if (v)
      if (const auto b = memory_of(e, *v, sizes.n * blocks_)) numbers_.push_back(*b);
}

void weights_ahead::codes(Value place, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += line_bytes)
    e_.code.prefetch(e_.pointer(codes_), e_.code.add(place, ahead_ + i), element_type::u8, 2);
}

void weights_ahead::scales(Value column) {
  for (const buffer& b : numbers_) numbers(b, column);
}

void weights_ahead::numbers(const buffer& of_blocks, Value column) {
  const std::int64_t line = line_bytes * 8 / storage_bits(of_blocks.type);
  const Value first = e_.code.mul(e_.code.add(column, ahead_ / column_bytes_), blocks_);
  for (std::int64_t i = 0; i < columns_ * blocks_; i += line)
    e_.code.prefetch(e_.pointer(of_blocks), e_.code.add(first, i), of_blocks.type, 2);
}

}  // namespace kiln::cpu
