#include "ir/open_dimensions.hpp"

#include "ir/error.hpp"

namespace kiln {

std::vector<std::string> open_dimensions(const program& p, const dim_bindings& given) {
  std::vector<std::string> names;
  for (const auto& [name, range] : p.symbols)
    if (!given.contains(name)) names.push_back(name);
  return names;
}

std::string are_open(std::span<const std::string> names) {
  if (names.size() == 1) return "dimension '" + names[0] + "' is open: give it a value";
  std::string text = "dimensions ";
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "'" : i + 1 == names.size() ? " and '" : ", '") + names[i] + "'";
  return text + " are open: give them values";
}

void require_dimensions(const program& p, const dim_bindings& given, const std::string& remedy) {
  if (const auto names = open_dimensions(p, given); !names.empty())
    throw error(error_kind::usage, are_open(names) + remedy);
}

}  // namespace kiln
