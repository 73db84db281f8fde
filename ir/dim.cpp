#include "ir/dim.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "ir/error.hpp"

namespace kiln {
namespace {

constexpr std::string_view floor_prefix = "floor(";
// More than any model needs, and few enough that hostile text cannot stall a reader.
constexpr std::size_t max_terms = 1024;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  std::int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) throw error(error_kind::invalid_model, "a tensor dimension overflows 64 bits");
  return out;
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (__builtin_add_overflow(a, b, &out)) throw error(error_kind::invalid_model, "a tensor dimension overflows 64 bits");
  return out;
}

// Recursive descent over: sum = product (('+'|'-') product)*, product = factor ('*' factor)*,
// factor = ['-'] number | symbol | floor(sum/number).
class parser {
 public:
  explicit parser(std::string_view text) : text_(text) {}

  dim whole() {
    dim result = sum();
    if (at_ != text_.size()) fail();
    return result;
  }

 private:
  [[noreturn]] void fail() const {
    throw error(error_kind::corrupted, "not a dimension: '" + std::string(text_) + "'");
  }
  bool take(char c) {
    if (at_ < text_.size() && text_[at_] == c) return ++at_, true;
    return false;
  }
  dim sum() {
    if (++depth_ > 64) fail();
    dim result = product();
    for (;;) {
      if (take('+')) result = result + product();
      else if (take('-')) result = result - product();
      else break;
    }
    --depth_;
    return result;
  }
  dim product() {
    dim result = factor();
    while (take('*')) result = result * factor();
    return result;
  }
  std::int64_t number() {
    std::int64_t value = 0;
    auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code != std::errc{}) fail();
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  dim factor() {
    if (at_ >= text_.size()) fail();
    char c = text_[at_];
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c))) return number();
    if (text_.substr(at_).starts_with(floor_prefix)) {
      at_ += floor_prefix.size();
      dim numerator = sum();
      if (!take('/')) fail();
      std::int64_t divisor = number();
      if (divisor <= 0 || !take(')')) fail();
      return numerator / dim(divisor);
    }
    std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.')) ++at_;
    if (begin == at_) fail();
    return dim::symbol(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

dim dim::symbol(std::string_view name) {
  std::string clean(name);
  for (char& c : clean)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  if (clean.empty() || std::isdigit(static_cast<unsigned char>(clean[0]))) clean.insert(0, "d_");
  return from({{{clean}, 1}});
}

dim dim::parse(std::string_view text) { return parser(text).whole(); }

dim dim::from(polynomial terms) {
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms.begin()->first.empty()) return terms.begin()->second;
  dim result;
  result.expression_ = std::make_shared<const polynomial>(std::move(terms));
  return result;
}

dim::polynomial dim::terms() const {
  if (expression_) return *expression_;
  polynomial result;
  if (value_ != 0) result.emplace(std::vector<std::string>{}, value_);
  return result;
}

std::int64_t dim::value() const {
  if (!is_static()) throw error(error_kind::usage, "dimension '" + str() + "' has no value yet: give it one with --dim");
  return value_;
}

std::string dim::str(const polynomial& terms) {
  std::string text;
  for (const auto& [atoms, coefficient] : terms) {
    if (!text.empty() && coefficient > 0) text += '+';
    if (atoms.empty() || coefficient != 1) text += std::to_string(coefficient);
    bool first = atoms.empty() || coefficient == 1;
    for (const auto& atom : atoms) {
      if (!first) text += '*';
      text += atom;
      first = false;
    }
  }
  return text;
}

std::string dim::str() const { return is_static() ? std::to_string(value_) : str(*expression_); }

std::set<std::string> dim::symbols() const {
  std::set<std::string> found;
  if (is_static()) return found;
  for (const auto& term : *expression_)
    for (const auto& atom : term.first) {
      if (!atom.starts_with(floor_prefix)) { found.insert(atom); continue; }
      auto slash = atom.rfind('/');
      found.merge(parse(std::string_view(atom).substr(floor_prefix.size(), slash - floor_prefix.size())).symbols());
    }
  return found;
}

dim dim::substitute(const dim_bindings& bindings) const {
  if (is_static()) return *this;
  dim total = 0;
  for (const auto& [atoms, coefficient] : *expression_) {
    dim product = coefficient;
    for (const auto& atom : atoms) {
      if (atom.starts_with(floor_prefix)) {
        auto slash = atom.rfind('/');
        dim numerator = parse(std::string_view(atom).substr(floor_prefix.size(), slash - floor_prefix.size()));
        dim divisor = parse(std::string_view(atom).substr(slash + 1, atom.size() - slash - 2));
        product = product * (numerator.substitute(bindings) / divisor);
      } else if (auto found = bindings.find(atom); found != bindings.end()) {
        product = product * dim(found->second);
      } else {
        product = product * symbol(atom);
      }
    }
    total = total + product;
  }
  return total;
}

dim operator+(const dim& a, const dim& b) {
  if (a.is_static() && b.is_static()) return checked_add(a.value_, b.value_);
  auto terms = a.terms();
  for (const auto& [atoms, coefficient] : b.terms()) terms[atoms] = checked_add(terms[atoms], coefficient);
  return dim::from(std::move(terms));
}

dim operator-(const dim& a, const dim& b) { return a + dim(-1) * b; }

dim operator*(const dim& a, const dim& b) {
  if (a.is_static() && b.is_static()) return checked_mul(a.value_, b.value_);
  if (a.terms().size() * b.terms().size() > max_terms) throw error(error_kind::unsupported, "the dimension (" + a.str() + ")*(" + b.str() + ") has too many terms");
  dim::polynomial product;
  for (const auto& [left, x] : a.terms())
    for (const auto& [right, y] : b.terms()) {
      std::vector<std::string> atoms = left;
      atoms.insert(atoms.end(), right.begin(), right.end());
      std::sort(atoms.begin(), atoms.end());
      product[atoms] = checked_add(product[atoms], checked_mul(x, y));
    }
  return dim::from(std::move(product));
}

dim operator/(const dim& a, const dim& b) {
  if (a.is_static() && b.is_static()) {
    if (b.value_ == 0) throw error(error_kind::invalid_model, "a tensor dimension is divided by zero");
    if (b.value_ == -1) return dim(0) - a;  // checked: the smallest integer has no negative
    return floor_divide(a.value_, b.value_);
  }
  if (a == b) return 1;
  auto divisor = b.terms();
  if (divisor.size() == 1) {  // a monomial: exact when it divides every term
    const auto& [atoms, coefficient] = *divisor.begin();
    dim::polynomial quotient;
    bool exact = true;
    for (const auto& [numerator, c] : a.terms()) {
      std::vector<std::string> rest;
      if (coefficient == -1 ? c == INT64_MIN : c % coefficient != 0) { exact = false; break; }
      if (!std::includes(numerator.begin(), numerator.end(), atoms.begin(), atoms.end())) { exact = false; break; }
      std::set_difference(numerator.begin(), numerator.end(), atoms.begin(), atoms.end(), std::back_inserter(rest));
      quotient[rest] = c / coefficient;
    }
    if (exact) return dim::from(std::move(quotient));
  }
  if (b.is_static() && b.value_ > 0)
    return dim::from({{{std::string(floor_prefix) + a.str() + "/" + std::to_string(b.value_) + ")"}, 1}});
  throw error(error_kind::unsupported, "cannot divide dimension '" + a.str() + "' by '" + b.str() + "'");
}

bool operator==(const dim& a, const dim& b) {
  if (a.is_static() != b.is_static()) return false;
  return a.is_static() ? a.value_ == b.value_ : *a.expression_ == *b.expression_;
}

}  // namespace kiln
