#include "aot/onnx/input_values.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "ir/nearest_name.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

[[noreturn]] void misused(const std::string& name, const std::string& why) {
  throw error(error_kind::usage, "--value '" + name + "': " + why);
}

template <class Number>
Number parsed(const std::string& name, const std::string& text) {
  Number number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || end != text.data() + text.size())
    misused(name, "'" + text + "' is not " + (std::is_integral_v<Number> ? "an integer" : "a number"));
  return number;
}

// Types whose sums do not wrap for the sizes that models have.
bool holds_integers(element_type type) {
  return type == element_type::i32 || type == element_type::i64 || type == element_type::u32;
}

}  // namespace

value given_input(builder& b, const std::string& name, const shape& declared,
                  const std::vector<std::string>& elements) {
  auto dims = declared.dims;
  if (dims.size() == 1 && !dims.at(0).is_static()) dims.at(0) = static_cast<std::int64_t>(elements.size());
  for (const dim& d : dims)
    if (!d.is_static()) misused(name, "the input is " + declared.str() + "; fix its dimensions with --dim");
  shape type{declared.type, dims};
  if (type.element_count() != static_cast<std::int64_t>(elements.size()))
    misused(name, "the input is " + declared.str() + ", not " + std::to_string(elements.size()) + " elements");
  if (is_float(type.type)) {
    std::vector<double> numbers;
    for (const std::string& text : elements) numbers.push_back(parsed<double>(name, text));
    return b.constant(literal::from_doubles(type, numbers));
  }
  std::vector<std::int64_t> numbers;
  for (const std::string& text : elements) {
    if (type.type == element_type::boolean && (text == "true" || text == "false")) numbers.push_back(text == "true");
    else numbers.push_back(parsed<std::int64_t>(name, text));
  }
  return b.to_type(b.constant(literal::from_int64(numbers).reshaped(dims)), type.type);
}

void check_given_inputs(const import_options& options, const ::onnx::GraphProto& graph) {
  std::vector<std::string_view> known;
  for (const auto& i : graph.input()) known.push_back(i.name());
  for (const auto& [name, elements] : options.values) {
    if (std::ranges::find(known, name) == known.end())
      misused(name, "the model has no input of this name" + did_you_mean(name, known));
    for (const auto& t : graph.initializer())
      if (t.name() == name) misused(name, "the model has a constant of this name already");
  }
}

bool may_be_negative(node& n, const dim& d, std::int64_t least) {
  const import_state& state = n.owner.state();
  if (!state.least_values || &n.b.target() != &state.result.main()) return false;
  const std::string symbol = d.str();
  if (!d.is_symbol() || !symbol.starts_with(value_prefix) || n.b.facts().upper(d) == 1) return false;
  if (!state.least_values->contains(symbol)) throw negative_value_wanted(symbol, least);
  return true;
}

std::int64_t least_value(const import_state& state, const dim& symbol) {
  if (!state.least_values) return 0;
  const auto found = state.least_values->find(symbol.str());
  return found == state.least_values->end() ? 0 : found->second;
}

std::map<std::string, std::vector<dim>> check_values(import_state& state) {
  std::map<std::string, std::vector<dim>> plain;
  if (!state.values_as_symbols) return plain;
  for (value p : state.result.main().parameters()) {
    const std::string name = module::parameter_name(p);
    const shape& type = p.type();
    if (!is_integer(type.type) || (state.plain_inputs && state.plain_inputs->contains(name))) continue;
    std::vector<dim> known;
    if (type.is_static() && type.element_count() <= max_value_elements)
      for (std::int64_t i = 0; i < type.element_count(); ++i) known.push_back(value_symbol(name, i));
    for (summary s : {summary::max, summary::min, summary::sum})  // other symbols are at least 1
      if (const dim symbol = value_symbol(name, s); state.known.facts.lower(symbol) == 0) known.push_back(symbol);
    if (!known.empty() && !decides_sizes(state.result.symbols, name)) plain[name] = known;
    for (const dim& symbol : known)
      state.result.symbols.emplace(symbol.str(), dim_range{least_value(state, symbol), INT64_MAX, {}});
  }
  return plain;
}

void know_summary(node& n, summary s, value data, value result) {
  import_state& state = n.owner.state();
  if (!state.values_as_symbols || &n.b.target() != &state.result.main()) return;
  if (!result.type().is_static() || result.type().element_count() != 1 || !holds_integers(result.type().type)) return;
  while ((data.producer->op().is<convert>() && holds_integers(data.type().type)) || data.producer->op().is<reshape>() ||
         data.producer->op().is<transpose>())
    data = data.producer->inputs()[0];
  const auto* input = data.producer->op().get_if<parameter>();
  if (!input || (!holds_integers(data.type().type) && data.type().type != element_type::boolean)) return;
  if (n.b.known(result)) return;  // by its elements
  if (state.plain_inputs && state.plain_inputs->contains(input->name_in_module)) return;
  const dim symbol = value_symbol(input->name_in_module, s);
  state.known.facts.set_range(symbol.str(), 0, INT64_MAX);
  n.b.set_known(result, {symbol});
}

void know_last_sum(node& n, value sums, value index, value result) {
  const auto* op = sums.producer->op().get_if<cumulative_sum>();
  if (!op || op->exclusive || op->reverse || sums.type().rank() != 1) return;
  const auto at = n.b.constant_of(index);
  if (at && at->type().element_count() == 1 && at->to_int64()[0] == -1)
    know_summary(n, summary::sum, sums.producer->inputs()[0], result);
}

std::vector<std::string> inputs_behind(value v) {
  std::vector<std::string> names;
  std::vector<const instruction*> open{v.producer};
  std::unordered_set<const instruction*> seen{v.producer};
  while (!open.empty()) {
    const instruction* i = open.back();
    open.pop_back();
    if (const auto* p = i->op().get_if<parameter>()) names.push_back(p->name_in_module);
    for (value input : i->inputs())
      if (seen.insert(input.producer).second) open.push_back(input.producer);
  }
  return names;
}

std::string advice_to_know(value v) {
  auto names = inputs_behind(v);
  if (names.size() == 1)
    return "depends on input '" + names[0] + "'; give it at compile time with --value " + names[0] + "=...";
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
  if (list.empty()) return "depends on data";
  return "depends on the inputs " + list + "; give those that are settings at compile time with --value NAME=...";
}

}  // namespace kiln::onnx_import
