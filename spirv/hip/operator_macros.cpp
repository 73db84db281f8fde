#include "spirv/hip/operator_macros.hpp"

#include <clang/Basic/Diagnostic.h>
#include <clang/Lex/MacroArgs.h>
#include <clang/Lex/PPCallbacks.h>
#include <clang/Lex/Preprocessor.h>

#include <charconv>


namespace kiln::spirv {
namespace {

void report(clang::DiagnosticsEngine& diagnostics, clang::SourceLocation at, const std::string& what) {
  diagnostics.Report(at, diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Error, "%0")) << what;
}

// A part of an argument, with its places.
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
  collector(clang::Preprocessor& preprocessor, std::vector<declared_operator>& operators) : preprocessor_(preprocessor), operators_(operators) {}

  void MacroExpands(const clang::Token& name, const clang::MacroDefinition&, clang::SourceRange range, const clang::MacroArgs* arguments) override {
    llvm::StringRef text = name.getIdentifierInfo()->getName();
    for (const row& r : rows)
      if (text == r.name) {
        at_ = range.getBegin();
        std::vector<macro_text> given;
        for (unsigned i = 0; arguments && i < arguments->getNumMacroArguments(); ++i) given.push_back(read(*const_cast<clang::MacroArgs*>(arguments), i));
        if (&r != &rows[0] && operators_.empty()) return report(preprocessor_.getDiagnostics(), at_, std::string(r.name) + " before any KILN_OPERATOR");
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

  void fail(clang::SourceLocation at, const std::string& what) { report(preprocessor_.getDiagnostics(), at.isValid() ? at : at_, what); }
  declared_operator& current() { return operators_.back(); }

  // Calls `check` and reports what it throws where it happened.
  template <class Check>
  bool checked(const macro_text& m, Check check) {
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
  // The text of one or several literals in quotes, joined.
  std::string unquoted(const macro_text& m) {
    std::string result;
    bool inside = false, some = false;
    for (char c : m.text) {
      if (c == '"') inside = !inside, some = true;
      else if (inside) result += c;
      else if (c != ' ') some = false;
    }
    if (!some || inside) fail(m.at(0), "a text in quotes is needed here");
    return result;
  }
  std::uint32_t index(const macro_text& m, std::size_t expected, const char* what) {
    std::uint32_t number = 0;
    auto [end, code] = std::from_chars(m.text.data(), m.text.data() + m.text.size(), number);
    if (code != std::errc{} || end != m.text.data() + m.text.size()) fail(m.at(0), "an index is needed here");
    else if (expected != any_index && number != expected) fail(m.at(0), std::string(what) + " " + std::to_string(expected) + " comes next");
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
    if (checked(a[1], [&] { evaluate_type(a[1].text, scope()); })) current().result.restrictions.push_back({input, a[1].text});
  }

  void add_requirement(const std::vector<macro_text>& a) {
    if (integer(a[0])) current().result.requirements.push_back(a[0].text);
  }

  void add_attribute(const std::vector<macro_text>& a) {
    for (const auto& [known, value] : current().result.attributes)
      if (known == a[0].text) return fail(a[0].at(0), "attribute '" + known + "' is declared twice");
    if (parse_buffer(a[0].text) || a[0].text.empty()) return fail(a[0].at(0), "'" + a[0].text + "' cannot be an attribute's name");
    attribute_value value;
    if (a[1].text.starts_with("list(") && a[1].text.back() == ')') {
      std::vector<std::int64_t> sizes;
      for (std::string_view size : split_arguments(std::string_view(a[1].text).substr(5, a[1].text.size() - 6))) checked(a[1], [&] { sizes.push_back(evaluate_integer(size, scope()).value()); });
      value = std::move(sizes);
    } else if (a[1].text.starts_with('"')) value = unquoted(a[1]);
    else if (a[1].text.find_first_of(".eE") != std::string::npos) checked(a[1], [&] { value = evaluate_real(a[1].text, scope()); });
    else checked(a[1], [&] { value = evaluate_integer(a[1].text, scope()).value(); });
    current().result.attributes.emplace_back(a[0].text, std::move(value));
  }

  void add_output(const std::vector<macro_text>& a) {
    index(a[0], current().result.results.size(), "output");
    bool type = checked(a[1], [&] { evaluate_type(a[1].text, scope()); });
    if (checked(a[2], [&] { evaluate_dims(a[2].text, scope()); }) && type) current().result.results.push_back({a[1].text, a[2].text});
  }

  void add_scratch(const std::vector<macro_text>& a) {
    index(a[0], current().result.scratch.size(), "scratch");
    if (integer(a[1])) current().result.scratch.push_back(a[1].text);
  }

  void add_launch(const std::vector<macro_text>& a) {
    auto open = a[1].text.find('(');
    std::string_view rule = std::string_view(a[1].text).substr(0, open);
    kernel_launch launch;
    if (open == std::string::npos || a[1].text.back() != ')' || !parse_enum(rule, launch.rule)) return fail(a[1].at(0), "a launch rule is per_element(n), per_row(rows) or per_tile(x, y, z, threads_x, threads_y, threads_z)");
    auto sizes = split(part(a[1], std::string_view(a[1].text).substr(open + 1, a[1].text.size() - open - 2)));
    bool tile = launch.rule == launch_rule::per_tile;
    if (tile ? sizes.size() != 6 : sizes.empty() || sizes.size() > 2) return fail(a[1].at(0), std::string(rule) + " does not take " + std::to_string(sizes.size()) + " sizes");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!integer(sizes[i])) return;
      (i < (tile ? 3u : 1u) ? launch.count : launch.block).push_back(sizes[i].text);
    }
    current().result.launches.push_back(std::move(launch));
    current().launches.push_back({a[0], a.size() > 2 ? split(a[2]) : std::vector<macro_text>{}});
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
    {"KILN_OPERATOR", &collector::begin_operator}, {"KILN_INPUT", &collector::add_input},     {"KILN_ATTRIBUTE", &collector::add_attribute}, {"KILN_OUTPUT", &collector::add_output},
    {"KILN_SCRATCH", &collector::add_scratch},     {"KILN_LAUNCH", &collector::add_launch},   {"KILN_SHARED", &collector::set_shared},       {"KILN_REQUIRE", &collector::add_requirement},
};

std::string names_of(const std::vector<hip_kernel>& kernels) {
  std::string names;
  for (const hip_kernel& k : kernels) names += (names.empty() ? "" : ", ") + k.name;
  return names.empty() ? "none" : names;
}

std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

}  // namespace

clang::SourceLocation macro_text::at(std::size_t offset) const {
  auto found = places.upper_bound(offset);
  return found == places.begin() ? clang::SourceLocation() : std::prev(found)->second;
}

void collect_operators(clang::CompilerInstance& compiler, std::vector<declared_operator>& operators) {
  compiler.getPreprocessor().addPPCallbacks(std::make_unique<collector>(compiler.getPreprocessor(), operators));
}

void bind_kernels(clang::DiagnosticsEngine& diagnostics, std::vector<declared_operator>& operators, const std::vector<hip_kernel>& kernels) {
  for (declared_operator& o : operators) {
    if (o.result.launches.empty()) report(diagnostics, o.at, "operator '" + o.result.name + "' has no KILN_LAUNCH");
    if (o.result.results.empty()) report(diagnostics, o.at, "operator '" + o.result.name + "' has no KILN_OUTPUT");
    for (std::size_t i = 0; i < o.result.launches.size(); ++i) {
      kernel_launch& launch = o.result.launches[i];
      const auto& [name, arguments] = o.launches[i];
      const hip_kernel* kernel = nullptr;
      for (const hip_kernel& k : kernels)
        if (without_blanks(k.name) == without_blanks(name.text)) kernel = &k;
      if (!kernel) {
        report(diagnostics, name.at(0), "there is no __global__ function '" + name.text + "' (a template needs an explicit instantiation); there are: " + names_of(kernels));
        continue;
      }
      launch.symbol = kernel->symbol;
      launch.max_threads = kernel->max_threads;
      if (arguments.size() != kernel->parameters.size()) {
        report(diagnostics, name.at(0), "'" + kernel->name + "' has " + std::to_string(kernel->parameters.size()) + " parameters, the launch gives " + std::to_string(arguments.size()));
        continue;
      }
      for (std::size_t k = 0; k < arguments.size(); ++k) {
        const macro_text& a = arguments[k];
        auto buffer = parse_buffer(a.text);
        kernel_parameter wanted = kernel->parameters[k];
        std::string what = "parameter " + std::to_string(k) + " of '" + kernel->name + "'";
        if (wanted == kernel_parameter::other) report(diagnostics, a.at(0), what + " is neither a pointer nor an int, int64_t, float or double");
        else if ((wanted == kernel_parameter::pointer) != buffer.has_value()) report(diagnostics, a.at(0), what + (buffer ? " is a number, not a pointer" : " is a pointer: give it input0, output0 or scratch0"));
        else if (buffer) {
          auto [role, number] = *buffer;
          std::size_t known = role == "output" ? o.result.results.size() : role == "scratch" ? o.result.scratch.size() : std::size_t{1} << 16;
          if (number >= known) report(diagnostics, a.at(0), "there is no " + a.text);
          launch.parameters.push_back({role == "input" ? parameter_kind::input : role == "output" ? parameter_kind::output : parameter_kind::scratch, number, element_type::i64, {}});
        } else {
          bool real = wanted == kernel_parameter::f32 || wanted == kernel_parameter::f64;
          expression_scope scope{{}, {}, &o.result.attributes, true};
          try {
            if (real) evaluate_real(a.text, scope);
            else evaluate_integer(a.text, scope);
          } catch (const expression_error& e) {
            report(diagnostics, a.at(e.at()), e.reason());
          }
          element_type type = wanted == kernel_parameter::i32 ? element_type::i32 : wanted == kernel_parameter::i64 ? element_type::i64 : wanted == kernel_parameter::f32 ? element_type::f32 : element_type::f64;
          launch.parameters.push_back({real ? parameter_kind::real : parameter_kind::integer, 0, type, a.text});
        }
      }
    }
  }
}

}  // namespace kiln::spirv
