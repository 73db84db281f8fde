#include "tools/shape_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "ir/error.hpp"
#include "ir/nearest_name.hpp"

namespace kiln::tools {
namespace {

// INPUT:1x3x224x224 texts, several in one text if commas separate them; INPUT:scalar has no dims. Throws error{usage}.
std::map<std::string, std::vector<dim>> parse_shapes(const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<dim>> result;
  for (const std::string& text : texts)
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      const std::string one = text.substr(begin, end - begin);
      begin = end + 1;
      const std::size_t colon = one.rfind(':');  // names such as x:0 have colons too
      if (colon == std::string::npos || colon == 0)
        throw error(error_kind::usage, fmt::format("--shape takes INPUT:1x3x224x224, not '{}'", one));
      const std::string name = one.substr(0, colon), sizes = one.substr(colon + 1);
      std::vector<dim> dims;
      for (std::size_t at = 0; sizes != "scalar" && at <= sizes.size();) {
        const std::size_t next = std::min(sizes.find('x', at), sizes.size());
        std::int64_t number = 0;
        auto [last, code] = std::from_chars(sizes.data() + at, sizes.data() + next, number);
        if (code != std::errc{} || last != sizes.data() + next || number < 0)
          throw error(error_kind::usage, fmt::format("--shape {}: '{}' is not sizes such as 1x3x224x224", one, sizes));
        dims.emplace_back(number);
        at = next + 1;
      }
      if (!result.emplace(name, std::move(dims)).second)
        throw error(error_kind::usage, fmt::format("--shape {}: the input has a shape already; give it once", one));
    }
  return result;
}

}  // namespace

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
