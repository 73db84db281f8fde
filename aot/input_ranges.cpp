#include "aot/input_ranges.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "ir/ops/all.hpp"

namespace kiln {
namespace {

// Operations whose result consists of elements of their first input.
bool only_moves(const operation& op) {
  static const std::set<std::string_view> names{"reshape", "broadcast", "transpose", "slice",
                                                "concat",  "gather",    "convert"};
  return names.contains(op.name());
}

std::optional<std::int64_t> extent(const shape& data, std::int64_t axis) {
  const dim& d = data.dims[static_cast<std::size_t>(axis)];
  return d.is_static() ? std::optional(d.value()) : std::nullopt;
}

// Returns the extent of the axis that `user` indexes with its input `operand`; none if `user` does not index with it.
std::optional<std::int64_t> indexed_extent(const instruction& user, std::size_t operand) {
  if (operand != 1) return std::nullopt;
  const shape& data = user.inputs()[0].type();
  if (const auto* g = user.op().get_if<gather>()) return extent(data, g->axis);
  if (const auto* g = user.op().get_if<gather_elements>()) return extent(data, g->axis);
  if (const auto* s = user.op().get_if<scatter_elements>()) return extent(data, s->axis);
  return std::nullopt;
}

void visit(value v, std::set<value>& seen, std::optional<std::int64_t>& bound) {
  if (!seen.insert(v).second) return;
  for (instruction* user : v.producer->users())
    for (std::size_t i = 0; i < user->inputs().size(); ++i) {
      if (user->inputs()[i] != v) continue;
      if (auto found = indexed_extent(*user, i)) bound = std::min(bound.value_or(*found), *found);
      else if (only_moves(user->op()) && (i == 0 || user->op().is<concat>())) visit(user->output(), seen, bound);
    }
}

}  // namespace

void record_input_ranges(program& p) {
  for (value input : p.main().parameters()) {
    if (!is_integer(input.type().type)) continue;
    std::set<value> seen;
    std::optional<std::int64_t> bound;
    visit(input, seen, bound);
    if (bound) p.metadata["range:" + module::parameter_name(input)] = std::to_string(*bound);
  }
}

}  // namespace kiln
