#include "ir/operation.hpp"

#include "ir/error.hpp"

namespace kiln {

namespace detail {

void bad_attribute(std::string_view name, const attribute& value) {
  throw error(error_kind::corrupted, "attribute '" + std::string(name) + "' cannot be '" + kiln::str(value) + "'");
}

}  // namespace detail

operation operation::substitute(const dim_bindings& bindings) const {
  attribute_list list = attributes();
  bool changed = false;
  for (auto& entry : list)
    if (auto* dims = std::get_if<std::vector<dim>>(&entry.second))
      for (dim& d : *dims)
        if (!d.is_static()) {
          d = d.substitute(bindings);
          changed = true;
        }
  return changed ? make_operation(name(), list) : *this;
}

std::string operation::str() const {
  std::string text(name());
  std::string fields;
  for (const auto& [field, value] : attributes()) {
    if (field == "function") continue;  // already in the name
    if (!fields.empty()) fields += ", ";
    fields += field + "=" + kiln::str(value);
  }
  return fields.empty() ? text : text + "{" + fields + "}";
}

}  // namespace kiln
