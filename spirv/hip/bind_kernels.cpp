// Binds launches to the kernels that they name: sets symbols and types of parameters, and derives from the kernels'
// pointers which element types the tensors must have.
#include <clang/Basic/Diagnostic.h>

#include <algorithm>
#include <optional>

#include "spirv/hip/operator_macros.hpp"

namespace kiln::spirv {
namespace {

std::string names_of(const std::vector<kernel_declaration>& kernels) {
  std::string names;
  for (const kernel_declaration& k : kernels) names += (names.empty() ? "" : ", ") + k.name;
  return names.empty() ? "none" : names;
}

bool takes(const pointee& to, element_type type) {
  return to.type ? *to.type == type : to.bits == 0 || storage_bits(type) == to.bits;
}

// The element types that a pointer accepts: float32, or int32, uint32 and float32.
std::vector<element_type> types_of(const pointee& to) {
  std::vector<element_type> result;
  for (std::size_t i = 0; i < element_type_count; ++i)
    if (auto type = static_cast<element_type>(i); takes(to, type)) result.push_back(type);
  return result;
}

std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

class binder {
 public:
  binder(clang::CompilerInstance& compiler, declared_operator& o, const std::vector<hip_kernel>& kernels,
         const std::vector<kernel_declaration>& declarations)
      : compiler_(compiler), o_(o), kernels_(kernels), declarations_(declarations) {}

  void run() {
    if (o_.result.launches.empty()) fail(o_.at, "operator '" + o_.result.name + "' has no KILN_LAUNCH");
    if (o_.result.results.empty()) fail(o_.at, "operator '" + o_.result.name + "' has no KILN_OUTPUT");
    std::vector<bool> given(o_.result.results.size());
    for (std::size_t i = 0; i < o_.result.launches.size(); ++i) {
      if (!bind(o_.result.launches[i], o_.launches[i])) return;
      for (const parameter& p : o_.result.launches[i].parameters)
        if (p.kind == parameter_kind::output) given[p.index] = true;
    }
    for (std::size_t k = 0; k < given.size(); ++k)
      if (!given[k]) fail(o_.at, "no launch of operator '" + o_.result.name + "' takes output" + std::to_string(k));
  }

 private:
  void fail(clang::SourceLocation at, const std::string& what) {
    report(compiler_.getDiagnostics(), at, what);
    failed_ = true;
  }

  // Returns false if further checks would only report follow-up errors.
  bool bind(kernel_launch& launch, const declared_operator::launch_source& source) {
    auto called = kernels_called(source.kernel.text, declarations_, compiler_.getASTContext());
    if (called.empty()) {
      fail(source.kernel.at(0),
           "there is no __global__ function '" + source.kernel.text +
               "' (a template needs an explicit instantiation); there are: " + names_of(declarations_));
      return false;
    }
    if (called.size() > 1) {
      fail(source.kernel.at(0), "there are " + std::to_string(called.size()) + " __global__ functions '" +
                                    source.kernel.text + "': give each a unique name");
      return false;
    }
    const kernel_declaration& kernel = *called[0];
    auto compiled = std::ranges::find(kernels_, kernel.symbol, &hip_kernel::symbol);
    if (compiled == kernels_.end()) {
      fail(source.kernel.at(0), "'" + kernel.name + "' has no code");
      return false;
    }
    launch.symbol = kernel.symbol;
    launch.max_threads = compiled->max_threads;
    if (source.arguments.size() != kernel.parameters.size()) {
      fail(source.kernel.at(0), "'" + kernel.name + "' has " + std::to_string(kernel.parameters.size()) +
                                    " parameters, the launch gives " + std::to_string(source.arguments.size()));
      return false;
    }
    for (std::size_t k = 0; k < source.arguments.size(); ++k) {
      std::string what =
          "parameter " + std::to_string(k) + " of '" + kernel.name + "' (" + kernel.parameters[k].written + ")";
      bind_argument(launch, source.arguments[k], kernel.parameters[k], compiled->reads_only[k], what);
    }
    return !failed_;
  }

  void bind_argument(kernel_launch& launch, const macro_text& a, const declared_parameter& wanted, bool reads_only,
                     const std::string& what) {
    auto buffer = parse_buffer(a.text);
    if (wanted.kind == kernel_parameter::other)
      return fail(a.at(0), what + " is neither a pointer to data nor an int, int64_t, float or double");
    if ((wanted.kind == kernel_parameter::pointer) != buffer.has_value())
      return fail(a.at(0), what + (buffer ? " is a number, not a pointer"
                                          : " is a pointer: give it input0, output0 or scratch0"));
    if (!buffer) return bind_number(launch, a, wanted.kind);
    auto [role, number] = *buffer;
    parameter_kind kind = role == "input"    ? parameter_kind::input
                          : role == "output" ? parameter_kind::output
                                             : parameter_kind::scratch;
    std::size_t known = kind == parameter_kind::output    ? o_.result.results.size()
                        : kind == parameter_kind::scratch ? o_.result.scratch.size()
                                                          : std::size_t{1} << 16;
    if (number >= known) return fail(a.at(0), "there is no " + a.text);
    if (kind == parameter_kind::input && !wanted.to.is_constant && !reads_only)
      return fail(a.at(0),
                  what + " is written through, and inputs are not written: give it an output or scratch memory");
    if (kind != parameter_kind::scratch) require_type(a, kind, number, wanted.to, what);
    launch.parameters.push_back({kind, number, element_type::i64, {}});
  }

  void bind_number(kernel_launch& launch, const macro_text& a, kernel_parameter wanted) {
    bool real = wanted == kernel_parameter::f32 || wanted == kernel_parameter::f64;
    expression_scope scope{{}, {}, &o_.result.attributes, true};
    try {
      if (a.text.size() > longest_text)
        return fail(a.at(0), "a text of " + std::to_string(a.text.size()) + " characters; at most " +
                                 std::to_string(longest_text) + " are read");
      if (real) evaluate_real(a.text, scope);
      else evaluate_integer(a.text, scope);
    } catch (const expression_error& e) {
      fail(a.at(e.at()), e.reason());
    }
    element_type type = wanted == kernel_parameter::i32   ? element_type::i32
                        : wanted == kernel_parameter::i64 ? element_type::i64
                        : wanted == kernel_parameter::f32 ? element_type::f32
                                                          : element_type::f64;
    launch.parameters.push_back({real ? parameter_kind::real : parameter_kind::integer, 0, type, a.text});
  }

  // The tensor's type is checked here if its declaration fixes the type, otherwise by a requirement when a node is
  // bound.
  void require_type(const macro_text& a, parameter_kind kind, std::uint32_t number, const pointee& to,
                    const std::string& what) {
    if (!to.type && to.bits == 0) return;
    std::string expression = kind == parameter_kind::input ? "type(input" + std::to_string(number) + ")"
                                                           : without_blanks(o_.result.results[number].type);
    if (auto declared = type_of(expression)) {
      if (!takes(to, *declared))
        fail(a.at(0),
             what + " does not point at the elements of " + a.text + ", which are " + std::string(name(*declared)));
      return;
    }
    std::string requirement;
    for (element_type type : types_of(to))
      requirement += (requirement.empty() ? "" : " || ") + expression + " == " + std::string(name(type));
    if (requirement.empty()) return fail(a.at(0), what + " points at a type that tensors do not have");
    // The type of an optional input is checked only if the input is present.
    if (expression.starts_with("type(input"))
      requirement = "!has(" + expression.substr(5, expression.find(')') - 5) + ") || " + requirement;
    if (std::ranges::find(o_.result.requirements, requirement) == o_.result.requirements.end())
      o_.result.requirements.push_back(requirement);
  }

  // Returns a type that is known before any node: "float32", or "type(input0)" if KILN_INPUT declares that type.
  std::optional<element_type> type_of(const std::string& expression) const {
    for (const input_restriction& r : o_.result.restrictions)
      if (expression == "type(input" + std::to_string(r.input) + ")") return type_of(without_blanks(r.type));
    try {
      return evaluate_type(expression, {{}, {}, &o_.result.attributes});
    } catch (const error&) {
      return std::nullopt;  // the type depends on a tensor
    }
  }

  clang::CompilerInstance& compiler_;
  declared_operator& o_;
  const std::vector<hip_kernel>& kernels_;
  const std::vector<kernel_declaration>& declarations_;
  bool failed_ = false;
};

}  // namespace

void report(clang::DiagnosticsEngine& diagnostics, clang::SourceLocation at, const std::string& what) {
  diagnostics.Report(at, diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Error, "%0")) << what;
}

void bind_kernels(clang::CompilerInstance& compiler, std::vector<declared_operator>& operators,
                  const std::vector<hip_kernel>& kernels, const std::vector<kernel_declaration>& declarations) {
  for (declared_operator& o : operators) binder(compiler, o, kernels, declarations).run();
}

}  // namespace kiln::spirv
