#include "ir/error_kinds.hpp"

#include <algorithm>

namespace kiln {

std::string_view name(error_kind kind) { return error_kinds[static_cast<std::size_t>(kind)].name; }
int exit_code(error_kind kind) { return error_kinds[static_cast<std::size_t>(kind)].exit_code; }

error_kind error_kind_named(std::string_view name) {
  const auto* found = std::ranges::find(error_kinds, name, &error_kind_row::name);
  return found == error_kinds.end() ? error_kind::internal : found->kind;
}

}  // namespace kiln
