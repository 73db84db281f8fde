#include "spirv/hip/kernel_declaration.hpp"

#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/Mangle.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kiln::spirv {
namespace {

using clang::QualType;

clang::PrintingPolicy policy(const clang::ASTContext& context) {
  clang::PrintingPolicy result(context.getLangOpts());
  result.SuppressTagKeyword = true;
  result.SuppressUnwrittenScope = true;  // omits "(anonymous namespace)::"
  result.PrintAsCanonical = true;
  return result;
}

std::string without_blanks(std::string_view text) {
  std::string result;
  bool word = false, gap = false;
  for (char c : text) {
    if (c == ' ') {
      gap = true;
      continue;
    }
    bool is_word = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (gap && word && is_word) result += ' ';  // for example "unsigned int"
    result += c;
    word = is_word, gap = false;
  }
  return result;
}

// ---- parameters ----

pointee pointee_of(QualType t, const clang::ASTContext& context) {
  pointee result;
  result.is_constant = t.isConstQualified();
  t = t.getUnqualifiedType();
  while (const auto* array = context.getAsArrayType(t)) t = array->getElementType().getCanonicalType();
  result.is_constant |= t.isConstQualified();
  if (const auto* vector = t->getAs<clang::VectorType>()) t = vector->getElementType().getCanonicalType();
  t = t.getUnqualifiedType();
  const clang::CXXRecordDecl* record = t->getAsCXXRecordDecl();
  if (t->isSpecificBuiltinType(clang::BuiltinType::Float)) result.type = element_type::f32;
  else if (t->isSpecificBuiltinType(clang::BuiltinType::Double)) result.type = element_type::f64;
  else if (t->isSpecificBuiltinType(clang::BuiltinType::Float16)) result.type = element_type::f16;
  else if (t->isSpecificBuiltinType(clang::BuiltinType::BFloat16) || (record && record->getName() == "__hip_bfloat16"))
    result.type = element_type::bf16;
  else if (t->isIntegralOrEnumerationType() && !t->isCharType()) result.bits = static_cast<int>(context.getTypeSize(t));
  return result;
}

declared_parameter parameter_of(const clang::ParmVarDecl& p, const clang::ASTContext& context) {
  declared_parameter result;
  QualType t = p.getType().getCanonicalType().getUnqualifiedType();
  result.written = p.getType().getAsString(clang::PrintingPolicy(context.getLangOpts()));
  if (t->isPointerType() || t->isReferenceType()) {
    QualType to = t->getPointeeType().getCanonicalType();
    if (to->isAnyPointerType() || to->isReferenceType() || to->isFunctionType()) return result;
    result.kind = kernel_parameter::pointer;
    result.to = pointee_of(to, context);
  } else if (t->isIntegralOrEnumerationType()) {
    auto bits = context.getTypeSize(t);
    result.kind = bits == 32 ? kernel_parameter::i32 : bits == 64 ? kernel_parameter::i64 : kernel_parameter::other;
  } else if (t->isSpecificBuiltinType(clang::BuiltinType::Float)) {
    result.kind = kernel_parameter::f32;
  } else if (t->isSpecificBuiltinType(clang::BuiltinType::Double)) {
    result.kind = kernel_parameter::f64;
  }
  return result;
}

// ---- names ----

void add_arguments(std::vector<std::string>& result, llvm::ArrayRef<clang::TemplateArgument> arguments,
                   const clang::ASTContext& context) {
  for (const clang::TemplateArgument& a : arguments) {
    if (a.getKind() == clang::TemplateArgument::Pack) {
      add_arguments(result, a.pack_elements(), context);
      continue;
    }
    std::string text;
    llvm::raw_string_ostream out(text);
    a.print(policy(context), out, /*IncludeType=*/false);
    result.push_back(without_blanks(text));
  }
}

void add_kernel(std::vector<kernel_declaration>& result, const clang::FunctionDecl& f, clang::ASTContext& context) {
  if (!f.hasAttr<clang::CUDAGlobalAttr>() || !f.isThisDeclarationADefinition() || f.isDependentContext()) return;
  kernel_declaration& k = result.emplace_back();
  k.symbol = clang::ASTNameGenerator(context).getName(&f);
  llvm::raw_string_ostream base(k.base);
  f.printQualifiedName(base, policy(context));
  if (const clang::TemplateArgumentList* arguments = f.getTemplateSpecializationArgs())
    add_arguments(k.template_arguments, arguments->asArray(), context);
  k.name = k.base;
  if (f.getTemplateSpecializationArgs()) {
    k.name += '<';
    for (std::size_t i = 0; i < k.template_arguments.size(); ++i) k.name += (i ? ", " : "") + k.template_arguments[i];
    k.name += '>';
  }
  for (const clang::ParmVarDecl* p : f.parameters()) k.parameters.push_back(parameter_of(*p, context));
}

void collect(std::vector<kernel_declaration>& result, const clang::DeclContext& scope, clang::ASTContext& context) {
  for (const clang::Decl* d : scope.decls()) {
    if (const auto* made = llvm::dyn_cast<clang::FunctionTemplateDecl>(d)) {
      if (!made->isThisDeclarationADefinition()) continue;
      for (const clang::FunctionDecl* f : made->specializations())
        if (const clang::FunctionDecl* body = nullptr; f->isDefined(body)) add_kernel(result, *body, context);
    } else if (const auto* f = llvm::dyn_cast<clang::FunctionDecl>(d)) {
      if (!f->isFunctionTemplateSpecialization()) add_kernel(result, *f, context);
    } else if (llvm::isa<clang::NamespaceDecl, clang::LinkageSpecDecl>(d)) {
      collect(result, *llvm::cast<clang::DeclContext>(d), context);
    }
  }
}

// ---- how a launch refers to a kernel ----

// Alternative spellings of built-in types, with the form that Clang prints.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> spellings{
    {{"unsigned", "unsigned int"},
     {"signed", "int"},
     {"signed int", "int"},
     {"long int", "long"},
     {"short int", "short"},
     {"unsigned long int", "unsigned long"},
     {"unsigned short int", "unsigned short"},
     {"long long int", "long long"},
     {"unsigned long long int", "unsigned long long"},
     {"long unsigned", "unsigned long"},
     {"long unsigned int", "unsigned long"},
     {"int unsigned", "unsigned int"}}};

// "a<b, c<d>>" → {"b", "c<d>"}. Returns nullopt if there is no '<'.
std::optional<std::vector<std::string_view>> arguments_of(std::string_view name) {
  auto open = name.find('<');
  if (open == std::string_view::npos || name.back() != '>') return std::nullopt;
  std::vector<std::string_view> result;
  std::string_view inside = name.substr(open + 1, name.size() - open - 2);
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= inside.size(); ++i) {
    if (i < inside.size()) depth += (inside[i] == '<' || inside[i] == '(') - (inside[i] == '>' || inside[i] == ')');
    if (i == inside.size() ? i > begin : inside[i] == ',' && depth == 0) {
      result.push_back(inside.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return result;
}

const clang::NamedDecl* found(std::string_view qualified, clang::ASTContext& context) {
  const clang::DeclContext* scope = context.getTranslationUnitDecl();
  for (;;) {
    auto end = qualified.find("::");
    std::string_view part = qualified.substr(0, end);
    if (part.empty()) return nullptr;
    auto names = scope->lookup(&context.Idents.get(llvm::StringRef(part.data(), part.size())));
    if (names.empty()) return nullptr;
    const clang::NamedDecl* first = *names.begin();
    if (end == std::string_view::npos) return first;
    scope = llvm::dyn_cast<clang::DeclContext>(first);
    if (!scope) return nullptr;
    qualified.remove_prefix(end + 2);
  }
}

// Returns one template argument as Clang prints it: typedefs and constants are resolved, also inside of "pair<int64_t,
// 4>".
std::string canonical(std::string_view written, clang::ASTContext& context) {
  std::string text = without_blanks(written);
  for (auto [given, printed] : spellings)
    if (text == given) return std::string(printed);
  if (auto inner = arguments_of(text)) {
    std::string result = text.substr(0, text.find('<') + 1);
    for (std::size_t i = 0; i < inner->size(); ++i) result += (i ? "," : "") + canonical((*inner)[i], context);
    return result + ">";
  }
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])))
    while (text.back() == 'u' || text.back() == 'U' || text.back() == 'l' || text.back() == 'L') text.pop_back();
  if (const clang::NamedDecl* d = found(text, context)) {
    if (const auto* named = llvm::dyn_cast<clang::TypedefNameDecl>(d))
      return without_blanks(named->getUnderlyingType().getCanonicalType().getAsString(policy(context)));
    if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(d); variable && variable->isConstexpr())
      if (const clang::APValue* v = variable->evaluateValue(); v && v->isInt())
        return std::string(llvm::toString(v->getInt(), 10));
  }
  return text;
}

bool is_called(const kernel_declaration& k, std::string_view written, clang::ASTContext& context) {
  auto given = arguments_of(written);
  std::string base = without_blanks(written.substr(0, given ? written.find('<') : written.size()));
  if (base.starts_with("::")) base.erase(0, 2);
  if (base != k.base || (given && given->size() > k.template_arguments.size()) ||
      (!given && !k.template_arguments.empty()))
    return false;
  for (std::size_t i = 0; given && i < given->size(); ++i)
    if (without_blanks((*given)[i]) != k.template_arguments[i] &&
        canonical((*given)[i], context) != k.template_arguments[i])
      return false;
  return true;
}

}  // namespace

std::vector<kernel_declaration> declared_kernels(clang::ASTContext& context) {
  std::vector<kernel_declaration> result;
  collect(result, *context.getTranslationUnitDecl(), context);
  return result;
}

std::vector<const kernel_declaration*> kernels_called(std::string_view written,
                                                      const std::vector<kernel_declaration>& kernels,
                                                      clang::ASTContext& context) {
  std::string text = without_blanks(written);
  while (text.size() > 2 && text.front() == '(' && text.back() == ')') text = text.substr(1, text.size() - 2);
  std::vector<const kernel_declaration*> result;
  for (const kernel_declaration& k : kernels)
    if (is_called(k, text, context)) result.push_back(&k);
  // If all template arguments are given, only the kernel with exactly these arguments matches.
  if (auto given = arguments_of(text)) {
    auto exact = [&](const kernel_declaration* k) { return k->template_arguments.size() == given->size(); };
    if (std::ranges::any_of(result, exact))
      std::erase_if(result, [&](const kernel_declaration* k) { return !exact(k); });
  }
  return result;
}

}  // namespace kiln::spirv
