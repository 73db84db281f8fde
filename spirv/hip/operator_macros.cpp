#include "spirv/hip/operator_macros.hpp"

#include <clang/Basic/Diagnostic.h>
#include <clang/Lex/MacroArgs.h>
#include <clang/Lex/PPCallbacks.h>
#include <clang/Lex/Preprocessor.h>

#include <algorithm>
#include <charconv>

namespace kiln::spirv {
namespace {

// Returns a part of an argument with its source locations.
macro_text part(const macro_text& whole, std::string_view piece) {
  auto begin = static_cast<std::size_t>(piece.data() - whole.text.data());
  macro_text result{std::string(piece), {}};
  result.places[0] = whole.at(begin);
  for (auto [offset, place] : whole.places)
    if (offset >= begin && offset < begin + piece.size()) result.places[offset - begin] = place;
  return result;
}

std::vector<macro_text> split(const macro_text& whole) {
  std::vector<macro_text> result;
  for (std::string_view piece : split_arguments(whole.text)) result.push_back(part(whole, piece));
  return result;
}

class collector : public clang::PPCallbacks {
 public:
  collector(clang::Preprocessor& preprocessor, std::vector<declared_operator>& operators)
      : preprocessor_(preprocessor), operators_(operators) {}

  void MacroExpands(const clang::Token& name, const clang::MacroDefinition&, clang::SourceRange range,
                    const clang::MacroArgs* arguments) override {
    llvm::StringRef text = name.getIdentifierInfo()->getName();
    for (const row& r : rows)
      if (text == r.name) {
        at_ = range.getBegin();
        std::vector<macro_text> given;
        for (unsigned i = 0; arguments && i < arguments->getNumMacroArguments(); ++i)
          given.push_back(read(*const_cast<clang::MacroArgs*>(arguments), i));
        if (&r != &rows[0] && operators_.empty())
          return report(preprocessor_.getDiagnostics(), at_, std::string(r.name) + " before any KILN_OPERATOR");
        (this->*r.handle)(given);
      }
  }

 private:
  using handler = void (collector::*)(const std::vector<macro_text>&);
  struct row {
    const char* name;
    handler handle;
  };
  static const row rows[8];

  macro_text read(clang::MacroArgs& arguments, unsigned index) {
    macro_text result;
    for (const clang::Token& token : arguments.getPreExpArgument(index, preprocessor_)) {
      if (token.is(clang::tok::eof)) break;
      if (token.hasLeadingSpace() && !result.text.empty()) result.text += ' ';
      result.places.emplace(result.text.size(), token.getLocation());
      result.text += preprocessor_.getSpelling(token);
    }
    return result;
  }

  void fail(clang::SourceLocation at, const std::string& what) {
    report(preprocessor_.getDiagnostics(), at.isValid() ? at : at_, what);
  }
  declared_operator& current() { return operators_.back(); }

  // Calls `check` and reports an error that it throws at the location of the error.
  template <class Check>
  bool checked(const macro_text& m, Check check) {
    if (m.text.size() > longest_text) {
      fail(m.at(0), "a text of " + std::to_string(m.text.size()) + " characters; at most " +
                        std::to_string(longest_text) + " are read");
      return false;
    }
    try {
      check();
      return true;
    } catch (const expression_error& e) {
      fail(m.at(e.at()), e.reason());
    } catch (const error& e) {
      fail(m.at(0), e.what());
    }
    return false;
  }
  expression_scope scope() const { return {{}, {}, &operators_.back().result.attributes, true}; }
  bool integer(const macro_text& m) {
    return checked(m, [&] { evaluate_integer(m.text, scope()); });
  }
  // Returns the concatenation of one or more string literals.
  std::string unquoted(const macro_text& m) {
    std::string result;
    bool inside = false, some = false;
    for (char c : m.text) {
      if (c == '"') inside = !inside, some = true;
      else if (inside) result += c;
      else if (c != ' ') some = false;
    }
    if (!some || inside) fail(m.at(0), "expected a text in quotes");
    return result;
  }
  std::uint32_t index(const macro_text& m, std::size_t expected, const char* what) {
    std::uint32_t number = 0;
    auto [end, code] = std::from_chars(m.text.data(), m.text.data() + m.text.size(), number);
    if (code != std::errc{} || end != m.text.data() + m.text.size()) fail(m.at(0), "expected an index");
    else if (expected != any_index && number != expected)
      fail(m.at(0), std::string(what) + " " + std::to_string(expected) + " comes next");
    return number;
  }
  static constexpr std::size_t any_index = ~std::size_t{0};

  void begin_operator(const std::vector<macro_text>& a) {
    declared_operator& o = operators_.emplace_back();
    o.at = at_;
    o.result.domain = unquoted(a[0]);
    o.result.name = unquoted(a[1]);
    if (o.result.name.empty()) fail(a[1].at(0), "an operator needs a name");
  }

  void add_input(const std::vector<macro_text>& a) {
    std::uint32_t input = index(a[0], any_index, "input");
    if (checked(a[1], [&] { evaluate_type(a[1].text, scope()); }))
      current().result.restrictions.push_back({input, a[1].text});
  }

  void add_requirement(const std::vector<macro_text>& a) {
    if (integer(a[0])) current().result.requirements.push_back(a[0].text);
  }

  void add_attribute(const std::vector<macro_text>& a) {
    for (const auto& [known, value] : current().result.attributes)
      if (known == a[0].text) return fail(a[0].at(0), "attribute '" + known + "' is declared twice");
    if (parse_buffer(a[0].text) || a[0].text.empty())
      return fail(a[0].at(0), "'" + a[0].text + "' cannot be an attribute's name");
    attribute_value value;
    if (a[1].text.starts_with("list(") && a[1].text.back() == ')') {
      std::vector<std::int64_t> sizes;
      for (std::string_view size : split_arguments(std::string_view(a[1].text).substr(5, a[1].text.size() - 6)))
        checked(a[1], [&] { sizes.push_back(evaluate_integer(size, scope()).value()); });
      value = std::move(sizes);
    } else if (a[1].text.starts_with('"')) value = unquoted(a[1]);
    else if (a[1].text.find_first_of(".eE") != std::string::npos)
      checked(a[1], [&] { value = evaluate_real(a[1].text, scope()); });
    else checked(a[1], [&] { value = evaluate_integer(a[1].text, scope()).value(); });
    current().result.attributes.emplace_back(a[0].text, std::move(value));
  }

  void add_output(const std::vector<macro_text>& a) {
    index(a[0], current().result.results.size(), "output");
    bool type = checked(a[1], [&] { evaluate_type(a[1].text, scope()); });
    if (checked(a[2], [&] { evaluate_dims(a[2].text, scope()); }) && type)
      current().result.results.push_back({a[1].text, a[2].text});
  }

  void add_scratch(const std::vector<macro_text>& a) {
    index(a[0], current().result.scratch.size(), "scratch");
    if (integer(a[1])) current().result.scratch.push_back(a[1].text);
  }

  void add_launch(const std::vector<macro_text>& a) {
    auto given = split(a[0]);
    // The preprocessor also splits at the commas of template arguments.
    std::string_view whole = a[0].text;
    auto pieces = split_arguments(whole);
    std::size_t first = 0;
    auto open_brackets = [&] {
      auto name = std::string_view(
          pieces[0].data(), static_cast<std::size_t>(pieces[first].data() + pieces[first].size() - pieces[0].data()));
      return std::ranges::count(name, '<') > std::ranges::count(name, '>');
    };
    while (first + 1 < pieces.size() && open_brackets()) ++first;
    if (pieces.size() < first + 2)
      return fail(at_,
                  "a launch is a kernel, a rule and the kernel's arguments: KILN_LAUNCH(relu6, "
                  "per_element(elements(output0)), input0, output0)");
    macro_text kernel = part(
        a[0], std::string_view(pieces[0].data(), static_cast<std::size_t>(pieces[first].data() + pieces[first].size() -
                                                                          pieces[0].data())));
    const macro_text& rule_text = given[first + 1];
    auto open = rule_text.text.find('(');
    std::string_view rule = std::string_view(rule_text.text).substr(0, open);
    kernel_launch launch;
    if (open == std::string::npos || rule_text.text.back() != ')' || !parse_enum(rule, launch.rule))
      return fail(rule_text.at(0),
                  "a launch rule is per_element(n), per_row(rows), per_task(tasks, threads) or per_tile(x, y, z, "
                  "threads_x, threads_y, threads_z)");
    auto sizes =
        split(part(rule_text, std::string_view(rule_text.text).substr(open + 1, rule_text.text.size() - open - 2)));
    bool tile = launch.rule == launch_rule::per_tile;
    const bool task = launch.rule == launch_rule::per_task;
    if (tile ? sizes.size() != 6 : sizes.size() < (task ? 2u : 1u) || sizes.size() > 2)
      return fail(rule_text.at(0), std::string(rule) + " does not take " + std::to_string(sizes.size()) + " sizes");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!integer(sizes[i])) return;
      (i < (tile ? 3u : 1u) ? launch.count : launch.block).push_back(sizes[i].text);
    }
    current().result.launches.push_back(std::move(launch));
    current().launches.push_back(
        {std::move(kernel), {given.begin() + static_cast<std::ptrdiff_t>(first + 2), given.end()}});
  }

  void set_shared(const std::vector<macro_text>& a) {
    if (current().result.launches.empty()) return fail(at_, "KILN_SHARED before any KILN_LAUNCH");
    if (integer(a[0])) current().result.launches.back().shared_bytes = a[0].text;
  }

  clang::Preprocessor& preprocessor_;
  std::vector<declared_operator>& operators_;
  clang::SourceLocation at_;
};

const collector::row collector::rows[8] = {
    {"KILN_OPERATOR", &collector::begin_operator}, {"KILN_INPUT", &collector::add_input},
    {"KILN_ATTRIBUTE", &collector::add_attribute}, {"KILN_OUTPUT", &collector::add_output},
    {"KILN_SCRATCH", &collector::add_scratch},     {"KILN_LAUNCH", &collector::add_launch},
    {"KILN_SHARED", &collector::set_shared},       {"KILN_REQUIRE", &collector::add_requirement},
};

}  // namespace

clang::SourceLocation macro_text::at(std::size_t offset) const {
  auto found = places.upper_bound(offset);
  return found == places.begin() ? clang::SourceLocation() : std::prev(found)->second;
}

void collect_operators(clang::CompilerInstance& compiler, std::vector<declared_operator>& operators) {
  compiler.getPreprocessor().addPPCallbacks(std::make_unique<collector>(compiler.getPreprocessor(), operators));
}

}  // namespace kiln::spirv
