#include "runtime/size_table.hpp"

namespace kiln {
namespace {

// As shape::element_count(): sizes in bytes cannot wrap around.
constexpr std::int64_t most_elements = std::int64_t{1} << 46;

}  // namespace
size_table::index size_table::add(const dim& d) {
  const dim_table::index which = dims_.add(d);
  const auto [found, is_new] = index_of_dim_.try_emplace(which, static_cast<index>(entries_.size()));
  if (is_new) entries_.push_back({false, which});
  return found->second;
}

size_table::index size_table::add_bytes(const shape& s) {
  tensor wanted{s.type, {}};
  for (const dim& d : s.dims) wanted.dims.push_back(dims_.add(d));
  const auto [found, is_new] = index_of_tensor_.try_emplace(wanted, static_cast<index>(entries_.size()));
  if (!is_new) return found->second;
  entries_.push_back({true, static_cast<std::uint32_t>(tensors_.size())});
  tensors_.push_back(std::move(wanted));
  return found->second;
}

std::optional<std::vector<std::int64_t>> size_table::evaluate(const dim_bindings& sizes) const {
  const auto dims = dims_.evaluate(sizes);
  if (!dims) return std::nullopt;
  std::vector<std::int64_t> result;
  result.reserve(entries_.size());
  for (const entry& e : entries_) {
    if (!e.is_tensor) {
      result.push_back((*dims)[e.which]);
      continue;
    }
    std::int64_t elements = 1;
    for (dim_table::index d : tensors_[e.which].dims)
      if ((*dims)[d] < 0 || __builtin_mul_overflow(elements, (*dims)[d], &elements)) return std::nullopt;
    if (elements > most_elements) return std::nullopt;
    result.push_back(
        static_cast<std::int64_t>(storage_bytes(tensors_[e.which].type, static_cast<std::size_t>(elements))));
  }
  return result;
}

}  // namespace kiln
