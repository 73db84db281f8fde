#include "aot/onnx/dim_param.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "aot/onnx/node.hpp"
#include "ir/error.hpp"

namespace kiln::onnx_import {
namespace {

constexpr int deepest = 32;
constexpr std::size_t longest = 512;

// Parses the expressions that exporters print: sums and products, `//` and `%` as in Python, and calls of a few
// functions. Spaces are ignored.
class reader {
 public:
  explicit reader(std::string_view text) : text_(text) {}

  std::optional<dim> whole() {
    dim result = sum();
    skip_spaces();
    return failed_ || at_ != text_.size() ? std::nullopt : std::optional(result);
  }

 private:
  dim fail() {
    failed_ = true;
    at_ = text_.size();
    return 0;
  }
  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view what) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  dim sum() {
    if (++depth_ > deepest) return fail();
    dim result = product();
    while (!failed_) {
      if (take("+")) result = result + product();
      else if (take("-")) result = result - product();
      else break;
    }
    --depth_;
    return result;
  }
  static dim remainder(const dim& a, const dim& b) { return a - b * (a / b); }
  dim product() {
    dim result = factor();
    while (!failed_) {
      if (take("//")) result = result / factor();
      else if (take("*")) result = result * factor();
      else if (take("%")) result = remainder(result, factor());
      else break;
    }
    return result;
  }
  dim factor() {
    if (take("(")) {
      dim inner = sum();
      return take(")") ? inner : fail();
    }
    skip_spaces();
    if (at_ == text_.size()) return fail();
    auto is_letter = [&](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
    std::size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return fail();
    if (!std::isdigit(static_cast<unsigned char>(word[0]))) return take("(") ? call(word) : dim::symbol(word);
    std::int64_t number = 0;
    auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), number);
    return code == std::errc{} && end == word.data() + word.size() ? dim(number) : fail();
  }
  dim call(std::string_view name) {
    std::vector<dim> arguments{sum()};
    bool divides = name == "floor" && take("/");
    while (divides || take(",")) {
      arguments.push_back(sum());
      if (divides) break;
    }
    if (failed_ || !take(")")) return fail();
    struct function {
      std::string_view name;
      dim (*apply)(const dim&, const dim&);
    };
    static constexpr function functions[] = {
        {"floor", [](const dim& a, const dim& b) { return a / b; }},
        {"FloorDiv", [](const dim& a, const dim& b) { return a / b; }},
        {"Mod", remainder},
        {"Min", dim::min},
        {"min", dim::min},
        {"Max", dim::max},
        {"max", dim::max},
    };
    auto found = std::ranges::find(functions, name, &function::name);
    return found == std::end(functions) || arguments.size() != 2 ? fail() : found->apply(arguments[0], arguments[1]);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

std::optional<dim> read(const std::string& text) try {
  return text.size() > longest ? std::nullopt : reader(text).whole();
} catch (const error&) {  // overflow, or a division by zero
  return std::nullopt;
}

// Returns the symbol that can be solved for if the expression's value and all other symbols are known. Returns none if
// there is no such symbol or more than one is unknown. A '-' may be a hyphen ("batch-size"), so an expression with one
// introduces no symbol.
std::optional<std::string> told_symbol(const std::string& text, const dim& expression,
                                       const std::set<std::string>& known) {
  std::vector<std::string> unknown;
  for (const std::string& s : expression.symbols())
    if (!known.contains(s)) unknown.push_back(s);
  if (unknown.size() != 1 || text.find('-') != std::string::npos) return std::nullopt;
  dim step = expression.replace({{unknown[0], dim::symbol(unknown[0]) + dim(1)}}) - expression;
  return step.is_static() && step.value() > 0 ? std::optional(unknown[0]) : std::nullopt;
}

}  // namespace

dim_params read_dim_params(const std::vector<std::string>& names) {
  dim_params result;
  std::set<std::string> known;
  std::map<std::string, dim> expressions;
  auto add_symbol = [&](const std::string& symbol, const std::string& name) {
    auto [seen, fresh] = result.symbol_names.emplace(symbol, name);
    if (!fresh && seen->second != name)
      invalid("dimensions '" + seen->second + "' and '" + name + "' both become the symbol '" + symbol + "'");
    known.insert(symbol);
  };
  for (const std::string& name : names) {
    auto meaning = read(name);
    if (meaning && !meaning->is_symbol() && !meaning->is_static()) {
      expressions.emplace(name, *meaning);
      continue;
    }
    dim symbol = dim::symbol(meaning && meaning->is_symbol() ? meaning->str() : name);
    if (!result.meanings.emplace(name, symbol).second) continue;
    add_symbol(symbol.str(), name);
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (auto at = expressions.begin(); at != expressions.end();) {
      bool all_known =
          std::ranges::all_of(at->second.symbols(), [&](const std::string& s) { return known.contains(s); });
      auto told = all_known ? std::nullopt : told_symbol(at->first, at->second, known);
      if (!all_known && !told) {
        ++at;
        continue;
      }
      if (told) add_symbol(*told, *told);
      result.meanings.emplace(at->first, at->second);
      at = expressions.erase(at);
      progress = true;
    }
  }
  for (const auto& [name, expression] : expressions) {
    dim symbol = dim::symbol(name);
    result.meanings.emplace(name, symbol);
    add_symbol(symbol.str(), name);
  }
  return result;
}

}  // namespace kiln::onnx_import
