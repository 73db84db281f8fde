#include "jit/tuning/kernel_inputs.hpp"

#include <algorithm>
#include <charconv>
#include <random>

#include "ir/ops/all.hpp"

namespace kiln {
namespace {

// At most this many random values are drawn. Larger tensors repeat them, which costs only a copy.
constexpr std::int64_t most_drawn = 1 << 20;

std::int64_t range_of(const program& source, value v) {
  if (!v.producer->op().is<parameter>()) return 2;
  auto found = source.metadata.find("range:" + module::parameter_name(v));
  std::int64_t bound = 2;
  if (found != source.metadata.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), bound);
  return std::max<std::int64_t>(bound, 1);
}

}  // namespace

literal random_tensor(const shape& type, std::uint64_t seed, std::int64_t integers_below) {
  std::mt19937_64 engine(seed);
  std::vector<std::byte> bytes(type.bytes());
  const std::int64_t drawn = std::min(type.element_count(), most_drawn);
  if (is_float(type.type)) {
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < drawn; ++i) store_element(type.type, bytes.data(), i, normal(engine));
  } else {
    std::uniform_int_distribution<std::int64_t> uniform(0, type.type == element_type::boolean ? 1 : integers_below - 1);
    for (std::int64_t i = 0; i < drawn; ++i) store_integer(type.type, bytes.data(), i, uniform(engine));
  }
  // With a period that is a power of two, rows of such a length would be identical. Subtract 8 * 7919 bytes from the
  // period to avoid that.
  const std::size_t period =
      storage_bytes(type.type, static_cast<std::size_t>(drawn)) - (drawn < type.element_count() ? 8 * 7919 : 0);
  for (std::size_t at = storage_bytes(type.type, static_cast<std::size_t>(drawn)); at < bytes.size();) {
    const std::size_t size = std::min(period, bytes.size() - at);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at - period), size,
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
    at += size;
  }
  return literal(type, std::move(bytes));
}

std::vector<kernel_input> kernel_inputs(const program& source, const instruction& kernel, std::uint64_t seed) {
  std::vector<kernel_input> result;
  for (value v : kernel.inputs()) {
    if (const literal* data = module::constant(v)) result.push_back({*data, true});
    else result.push_back({random_tensor(v.type(), seed + result.size(), range_of(source, v)), false});
  }
  return result;
}

}  // namespace kiln
