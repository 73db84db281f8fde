#include "ir/size_resolver.hpp"

#include <algorithm>
#include <utility>

#include "ir/error.hpp"

namespace kiln {

std::vector<size_resolver::stage>& size_resolver::stages() {
  std::lock_guard lock(mutex_);
  if (!stages_.empty()) return stages_;
  for (size_stage& each : size_stages(program_)) {
    stage made{std::move(each.symbols), {}, {}, nullptr};
    for (const auto& [name, range] : each.source.symbols) made.open.push_back(name);
    for (value v : each.source.main().parameters()) made.parameters.push_back(module::parameter_name(v));
    made.run = open_(std::move(each.source));
    stages_.push_back(std::move(made));
  }
  return stages_;
}

void size_resolver::add(dim_bindings& sizes, const std::map<std::string, literal>& inputs) {
  for (const stage& each : stages()) {
    if (std::ranges::all_of(each.symbols, [&](const std::string& s) { return sizes.contains(s); })) continue;
    dim_bindings own;
    for (const std::string& name : each.open)
      if (const auto found = sizes.find(name); found != sizes.end()) own.insert(*found);
    std::vector<literal> given;
    for (const std::string& name : each.parameters) {
      const auto found = inputs.find(name);
      if (found == inputs.end())
        throw error(error_kind::usage, "input '" + name + "' is needed, because data decide sizes of this model");
      given.push_back(found->second);
    }
    const std::vector<literal> numbers = each.run(own, given);
    for (std::size_t i = 0; i < each.symbols.size(); ++i) sizes.try_emplace(each.symbols[i], numbers.at(i).at_int(0));
  }
}

}  // namespace kiln
