#include "aot/passes/scattered_rows.hpp"

#include <algorithm>

#include "aot/passes/facts.hpp"
#include "ir/bind_shapes.hpp"

namespace kiln {
namespace {

bool data_decides(const dim& d) {
  return !d.is_static() &&
         std::ranges::any_of(d.symbols(), [](const std::string& symbol) { return symbol.starts_with(value_prefix); });
}

}  // namespace

using enum scalar_function;

value scattered_rows(rewriter& write, value root) {
  const auto& op = *root.producer->op().get_if<scatter_elements>();
  const value data = root.producer->inputs()[0], indices = root.producer->inputs()[1],
              updates = root.producer->inputs()[2];
  const std::size_t rank = data.type().rank();
  if (op.reduction != scatter_reduction::none || rank < 2 || !indices.producer->op().is<broadcast>()) return {};
  const auto axis = static_cast<std::size_t>(normalize_axis(op.axis, rank));
  const value places = along_one_axis(indices, axis);
  if (!places) return {};
  for (std::size_t i = 0; i < rank; ++i)
    if (i != axis && !(indices.type().dims[i] == data.type().dims[i])) return {};
  const dim rows = data.type().dims[axis], count = indices.type().dims[axis];
  if (!(indices.type().dims == updates.type().dims) || count == dim(0) || rows == dim(0)) return {};
  // One place may have been broadcast along the axis.
  const std::size_t lead = rank - places.type().rank();
  if (!(count == dim(1)) && (axis < lead || !(places.type().dims[axis - lead] == count))) return {};

  const element_type type = places.type().type;
  std::vector<dim> aligned(rank, dim(1));
  aligned[axis] = rows;
  const auto wide = [&](value v) { return write.broadcast_to(write.reshape_to(v, aligned), data.type().dims); };
  value kept, source;
  if (count == dim(1) && rows.is_static()) {
    // Negative places count from the end; the others are clamped, as in ScatterElements.
    const auto number = [&](std::int64_t n) { return write.splat({type, {1}}, static_cast<double>(n)); };
    const value place = write.reshape_to(places, {1}), negative = write.apply(less, {place, number(0)});
    const value wrapped = write.apply(where, {negative, write.apply(add, {place, number(rows.value())}), place});
    const value own = write.apply(min, {write.apply(max, {wrapped, number(0)}), number(rows.value() - 1)});
    const value numbers = write.add(iota{type, {rows}, 0}, {});
    kept = write.apply(logical_not, {write.apply(equal, {numbers, write.broadcast_to(own, {rows})})});
    source = write.splat({element_type::i32, {rows}}, 0);
  } else {
    // The number of the last update of each row, or -1.
    const value none = write.splat({element_type::i32, {rows}}, -1);
    const value numbers = write.add(iota{element_type::i32, {count}, 0}, {});
    source =
        write.add(scatter_elements{0, scatter_reduction::none}, {none, write.reshape_to(places, {count}), numbers});
    kept = write.apply(less, {source, write.splat(source.type(), 0)});
  }
  std::vector<value> from{updates};
  if (data_decides(count)) {
    // There may be no updates, and nothing can be taken from an empty axis.
    std::vector<dim> one = updates.type().dims;
    one[axis] = 1;
    from.push_back(write.splat({updates.type().type, one}, 0));
  }
  const std::int64_t along = static_cast<std::int64_t>(axis);
  const value taken = write.add(gather{along}, {from.size() == 1 ? updates : write.add(concat{along}, from), source});
  return write.apply(where, {wide(kept), data, taken});
}

}  // namespace kiln
