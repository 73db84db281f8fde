#include "tools/shape_option.hpp"

#include <fmt/format.h>

#include "ir/error.hpp"
#include "ir/nearest_name.hpp"
#include "tools/model_options.hpp"

namespace kiln::tools {

value find_input(const program& p, const std::string& name) {
  std::vector<std::string_view> known;
  for (value v : p.main().parameters()) {
    if (module::parameter_name(v) == name) return v;
    known.push_back(module::parameter_name(v));
  }
  throw error(error_kind::usage,
              fmt::format("input '{}': the model has none of this name{}", name, did_you_mean(name, known)));
}

std::vector<given_shape> given_shapes(const program& p, const std::vector<std::string>& texts) {
  std::vector<given_shape> result;
  for (const auto& [name, dims] : parse_shapes(texts)) {
    const shape& declared = find_input(p, name).type();
    result.push_back({name, declared, {declared.type, dims}});
  }
  return result;
}

}  // namespace kiln::tools
