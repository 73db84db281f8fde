#include "ir/ops/cache_update.hpp"

#include <algorithm>
#include <cstring>

#include "ir/ops/check.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {

std::vector<shape> cache_update::infer(std::span<const shape> inputs) const {
  detail::input_check check(name(), inputs);
  if (inputs.size() != 4) check.arity(3);
  const shape &cache = inputs[0], &rows = inputs[1], &positions = inputs[2];
  check.that(axis > 0 && axis < static_cast<std::int64_t>(cache.rank()), "needs an axis after the first one");
  check.that(rows.type == cache.type && rows.rank() == cache.rank(), "cache and rows differ in type or rank");
  check.that(storage_bits(cache.type) >= 8, "elements must be bytes or larger");
  for (std::size_t i = 0; i < cache.rank(); ++i)
    if (static_cast<std::int64_t>(i) != axis && (i > 0 || inputs.size() == 3))
      check.equal(cache.dims[i], rows.dims[i], "cache and rows differ in size");
  const dim &room = cache.dims[static_cast<std::size_t>(axis)], &count = rows.dims[static_cast<std::size_t>(axis)];
  if (room.is_static() && count.is_static())
    check.that(count.value() <= room.value(), "more rows than the cache holds");
  check.index_type(positions);
  check.that(positions.rank() == 1, "needs a list of positions");
  if (!(positions.dims[0] == dim(1))) check.equal(positions.dims[0], rows.dims[0], "needs one position or one each");
  if (inputs.size() == 4) {
    check.index_type(inputs[3]);
    check.that(inputs[3].rank() == 1 && inputs[3].dims[0] == dim(1), "needs one layer");
    if (cache.dims[0].is_static() && rows.dims[0].is_static())
      check.that(
          rows.dims[0].value() > 0 && cache.dims[0].value() > 0 && cache.dims[0].value() % rows.dims[0].value() == 0,
          "the cache does not hold whole layers");
  }
  return {cache};
}

std::vector<literal> cache_update::evaluate(std::span<const literal> inputs) const {
  const shape out = reference::output_shapes(*this, inputs)[0];
  const auto dims = out.static_dims(), rows = inputs[1].type().static_dims();
  const auto along = static_cast<std::size_t>(axis);
  std::vector<std::byte> result(inputs[0].bytes().begin(), inputs[0].bytes().end());
  std::int64_t inner = static_cast<std::int64_t>(storage_bytes(out.type, 1)), outer = 1;
  for (std::size_t i = along + 1; i < dims.size(); ++i) inner *= dims[i];
  for (std::size_t i = 1; i < along; ++i) outer *= dims[i];
  const std::int64_t places = inputs[2].type().element_count();
  const std::size_t bytes = static_cast<std::size_t>(rows[along] * inner);
  const std::int64_t layers = inputs.size() == 4 ? dims[0] / rows[0] : 1;
  const std::int64_t first = layers > 1 ? std::clamp<std::int64_t>(inputs[3].at_int(0), 0, layers - 1) * rows[0] : 0;
  for (std::int64_t b = 0; b < rows[0]; ++b) {
    const std::int64_t wanted = inputs[2].at_int(places == 1 ? 0 : b);
    const std::int64_t start = std::clamp<std::int64_t>(wanted, 0, dims[along] - rows[along]);
    for (std::int64_t o = b * outer; o < (b + 1) * outer && bytes > 0; ++o)
      std::memcpy(result.data() + ((first * outer + o) * dims[along] + start) * inner,
                  inputs[1].bytes().data() + static_cast<std::size_t>(o) * bytes, bytes);
  }
  return {{out, std::move(result)}};
}

}  // namespace kiln
