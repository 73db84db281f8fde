#include "runtime/graph/graph_options.hpp"

#include <algorithm>
#include <array>

namespace kiln {
namespace {

constexpr std::array<std::string_view, 3> policy_names{"off", "on", "auto"};

}  // namespace

std::string_view name(graph_policy policy) { return policy_names[static_cast<std::size_t>(policy)]; }

std::optional<graph_policy> graph_policy_named(std::string_view name) {
  auto found = std::ranges::find(policy_names, name);
  if (found == policy_names.end()) return std::nullopt;
  return static_cast<graph_policy>(found - policy_names.begin());
}

}  // namespace kiln
