#include "ir/bind_shapes.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "ir/invalid_shape.hpp"

namespace kiln {
namespace {

[[noreturn]] void disagree(const given_shape& input, const std::string& why) {
  throw error(invalid_shape,
              "input '" + input.name + "' is " + input.is.str() + ", the model takes " + input.declared.str() + why);
}

// What helps where two sizes of one dimension differ because one of them is 1.
std::string_view if_one(std::int64_t smaller) {
  return smaller == 1 ? " (dimensions that broadcast count as equal, see kiln compile --may-be-one)" : "";
}

constexpr std::array summaries{summary::max, summary::min, summary::sum};

// nullopt for the largest or smallest of no elements.
std::optional<std::int64_t> summarized(summary s, const literal& data) {
  std::optional<std::int64_t> result;
  for (std::int64_t i = 0, n = data.type().element_count(); i < n; ++i) {
    const std::int64_t x = data.at_int(i);
    if (!result) result = x;
    else if (s == summary::sum)
      result = static_cast<std::int64_t>(static_cast<std::uint64_t>(*result) + static_cast<std::uint64_t>(x));
    else result = s == summary::max ? std::max(*result, x) : std::min(*result, x);
  }
  return result || s != summary::sum ? result : 0;
}

}  // namespace

std::optional<std::int64_t> solve_dim(const dim& expression, const std::string& symbol, std::int64_t target) {
  auto at = [&](std::int64_t value) { return expression.substitute(dim_bindings{{symbol, value}}); };
  dim constant = at(0), slope = at(1) - constant;
  if (!constant.is_static() || !slope.is_static()) return std::nullopt;  // other symbols are unbound
  dim linear = constant + slope * dim::symbol(symbol);
  if (expression == linear) {
    std::int64_t rest = (dim(target) - constant).value();
    if (slope == dim(0) || rest % slope.value() != 0 || rest / slope.value() < 0) return std::nullopt;
    return rest / slope.value();
  }
  // Not linear. Dimensions grow with their symbols, so find the value by bisection.
  constexpr std::int64_t largest = std::int64_t{1} << 31;
  std::int64_t low = 0, high = 1;
  while (high < largest && at(high).value() < target) high *= 2;
  while (low < high) {
    std::int64_t middle = low + (high - low) / 2;
    if (at(middle).value() < target) low = middle + 1;
    else high = middle;
  }
  if (at(low).value() != target || at(low + 1).value() == target) return std::nullopt;
  return low;
}

dim value_symbol(std::string_view input, std::int64_t element) {
  return dim::symbol(std::string(value_prefix) + std::string(input) + "." + std::to_string(element));
}

dim value_symbol(std::string_view input, summary of_all) {
  return dim::symbol(std::string(value_prefix) + std::string(input) + "." + std::string(enum_name(of_all)));
}

bool decides_sizes(const std::map<std::string, dim_range>& symbols, std::string_view input) {
  for (std::int64_t i = 0; i < max_value_elements; ++i)
    if (symbols.contains(value_symbol(input, i).str())) return true;
  return std::ranges::any_of(summaries, [&](summary s) { return symbols.contains(value_symbol(input, s).str()); });
}

dim_bindings bind_values(const std::map<std::string, dim_range>& wanted, const std::string& input,
                         const literal& data) {
  dim_bindings bindings;
  if (is_float(data.type().type)) return bindings;
  const std::int64_t count = data.type().element_count();
  for (std::int64_t i = 0; i < (count > max_value_elements ? 0 : count); ++i)
    if (std::string symbol = value_symbol(input, i).str(); wanted.contains(symbol)) bindings[symbol] = data.at_int(i);
  for (summary s : summaries)
    if (std::string symbol = value_symbol(input, s).str(); wanted.contains(symbol))
      if (auto number = summarized(s, data)) bindings[symbol] = *number;
  return bindings;
}

void add_sizes(dim_bindings& sizes, const dim_bindings& more, const std::string& input) {
  for (const auto& [name, value] : more)
    if (auto [known, fresh] = sizes.emplace(name, value); known->second != value)
      throw error(invalid_shape, "input '" + input + "': it makes '" + name + "' " + std::to_string(value) +
                                     ", which was given as " + std::to_string(known->second));
}

dim_bindings bind_shapes(std::span<const given_shape> inputs, const dim_bindings& given) {
  dim_bindings bindings = given;
  std::map<std::string, std::string> decided_by;  // symbol → the input that has it as a dimension
  struct place {
    const given_shape* input;
    dim declared;
    std::int64_t is;
  };
  std::vector<place> open;
  for (const given_shape& input : inputs) {
    if (input.declared.rank() != input.is.rank() || input.declared.type != input.is.type) disagree(input, "");
    for (std::size_t i = 0; i < input.is.rank(); ++i) {
      if (!input.declared.dims[i].is_symbol())
        open.push_back({&input, input.declared.dims[i], input.is.dims[i].value()});
      else if (auto [known, fresh] = bindings.emplace(input.declared.dims[i].str(), input.is.dims[i].value()); fresh)
        decided_by.emplace(known->first, input.name);
      else if (known->second != input.is.dims[i].value()) {
        const auto other = decided_by.find(known->first);
        disagree(input,
                 ": '" + known->first + "' is " + input.is.dims[i].str() + " here and " +
                     (other == decided_by.end() ? "was given as " + std::to_string(known->second)
                                                : std::to_string(known->second) + " in '" + other->second + "'") +
                     std::string(if_one(std::min(known->second, input.is.dims[i].value()))));
      }
    }
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (const place& p : open) {
      dim rest = p.declared.substitute(bindings);
      auto symbols = rest.symbols();
      if (symbols.size() != 1) continue;
      if (auto value = solve_dim(rest, *symbols.begin(), p.is)) {
        bindings[*symbols.begin()] = *value;
        progress = true;
      }
    }
  }
  for (const place& p : open) {
    dim rest = p.declared.substitute(bindings);
    if (rest.is_static() && rest.value() != p.is)
      disagree(*p.input, p.declared.is_static()
                             ? ": a dimension is " + std::to_string(p.is) + " and must be " + p.declared.str()
                             : ": '" + p.declared.str() + "' is " + std::to_string(p.is) + " here and " + rest.str() +
                                   " by the other dimensions");
    if (auto symbols = rest.symbols(); symbols.size() == 1)
      disagree(*p.input,
               ": no value of '" + *symbols.begin() + "' makes '" + p.declared.str() + "' " + std::to_string(p.is));
  }
  return bindings;
}

}  // namespace kiln
