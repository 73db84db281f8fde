#include "ir/dim.hpp"

#include <algorithm>
#include <cctype>

#include "ir/error.hpp"

namespace kiln {
namespace {

// More than any real model needs, but small enough that hostile text cannot stall a reader.
constexpr std::size_t max_terms = 1024, max_atom_text = 8192, max_operands = 64;

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (__builtin_mul_overflow(a, b, &out))
    throw error(error_kind::invalid_model, "a tensor dimension overflows 64 bits");
  return out;
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (__builtin_add_overflow(a, b, &out))
    throw error(error_kind::invalid_model, "a tensor dimension overflows 64 bits");
  return out;
}

std::int64_t checked_sub(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (__builtin_sub_overflow(a, b, &out))
    throw error(error_kind::invalid_model, "a tensor dimension overflows 64 bits");
  return out;
}

dim made_of(dim_atom::kind kind, std::string_view name, std::vector<dim> operands, char separator) {
  std::string text(name);
  for (const dim& d : operands) text += (text.back() == '(' ? std::string() : std::string(1, separator)) + d.str();
  text += ')';
  if (text.size() > max_atom_text)
    throw error(error_kind::unsupported, "the dimension " + text.substr(0, 60) + "... is too long");
  return dim::from(std::make_shared<const dim_atom>(dim_atom{kind, std::move(text), std::move(operands), {}}));
}

// Splits a into whole * b + rest, where the coefficients of rest are in [0, b).
void split_by(const dim& a, std::int64_t b, dim& whole, dim& rest) {
  dim_terms outside, inside;
  for (const auto& [atoms, c] : a.terms()) {
    std::int64_t remainder = ((c % b) + b) % b;
    if (remainder != 0) inside[atoms] = remainder;
    if (c != remainder) outside[atoms] = c / b - (c % b < 0);
  }
  whole = dim::from(std::move(outside));
  rest = dim::from(std::move(inside));
}

std::int64_t greatest_common_divisor(std::int64_t a, std::int64_t b) {
  while (b != 0) {
    std::int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

// Applies floor((floor(x / n) + y) / b) = floor((x + n * y) / (n * b)) for numbers n, b > 0. Sets the arguments to the
// numerator and divisor of the right side.
bool unnest(dim& numerator, std::int64_t& b) {
  for (const auto& [atoms, c] : numerator.terms()) {
    if (c != 1 || atoms.size() != 1 || atoms[0]->is != dim_atom::kind::quotient || !atoms[0]->operands[1].is_static())
      continue;
    const dim &x = atoms[0]->operands[0], n = atoms[0]->operands[1];
    if (n.value() <= 0) continue;
    dim rest = numerator - dim::from(atoms[0]);
    numerator = x + n * rest;
    b = checked_mul(b, n.value());
    return true;
  }
  return false;
}

dim divide_by_number(dim a, std::int64_t b) {
  dim total = 0, whole, rest;
  do {
    split_by(a, b, whole, rest);
    total = total + whole;
    a = rest;
  } while (unnest(a, b));
  // floor((g*x + r) / (g*c)) = floor((x + floor(r/g)) / c).
  std::int64_t common = b, constant = 0;
  for (const auto& [atoms, c] : a.terms()) {
    if (atoms.empty()) constant = c;
    else common = greatest_common_divisor(common, c);
  }
  dim_terms reduced;
  for (const auto& [atoms, c] : a.terms())
    if (!atoms.empty()) reduced[atoms] = c / common;
  a = dim::from(std::move(reduced)) + dim(constant / common);
  b /= common;
  if (b == 1) return total + a;
  if (common > 1 && unnest(a, b)) return total + divide_by_number(a, b);
  if (a.is_static()) return total + dim(a.value() / b);  // in [0, b)
  // floor(-x / b) = -floor((x + b - 1) / b). The canonical form uses the side with the smaller first coefficient.
  for (const auto& [atoms, c] : a.terms()) {
    if (atoms.empty() || 2 * (c % b) == b) continue;
    if (c % b > b / 2) return total - divide_by_number(dim(b - 1) - a, b);
    break;
  }
  return total + made_of(dim_atom::kind::quotient, "floor(", {a, b}, '/');
}

// Cancels common atoms and the common factor of all terms of a and b.
void cancel(dim& a, dim& b) {
  std::int64_t factor = 0;
  dim_product shared;
  bool first = true;
  for (const dim* side : {&a, &b})
    for (const auto& [atoms, c] : side->terms()) {
      if (c == INT64_MIN) return;
      factor = greatest_common_divisor(factor, std::abs(c));
      dim_product both;
      if (!first)
        std::set_intersection(shared.begin(), shared.end(), atoms.begin(), atoms.end(), std::back_inserter(both),
                              dim_atom_order{});
      shared = first ? atoms : both;
      first = false;
    }
  dim common = dim::from(dim_terms{{shared, factor}});
  dim left, right;
  if (common == dim(1) || !divides_exactly(a, common, left) || !divides_exactly(b, common, right)) return;
  a = left, b = right;
}

// Builds minima and maxima. `pick` returns the winner of two numbers.
template <class Pick>
dim extreme(dim_atom::kind kind, std::string_view name, const dim& a, const dim& b, Pick pick) {
  std::vector<dim> open{b, a}, operands;
  // x + min(y, z) = min(x + y, x + z). A sum of several minima stays as it is: its cases are their product.
  while (!open.empty()) {
    dim each = open.back();
    open.pop_back();
    auto terms = each.terms();
    const auto is_inner = [&](const auto& t) { return t.second == 1 && t.first.size() == 1 && t.first[0]->is == kind; };
    auto inner = std::ranges::find_if(terms, is_inner);
    if (inner == terms.end() || std::ranges::count_if(terms, is_inner) > 1) {
      operands.push_back(each);
      continue;
    }
    dim outside = each - dim::from(inner->first[0]);
    for (const dim& d : inner->first[0]->operands) open.push_back(outside + d);
    if (open.size() + operands.size() > max_operands)
      throw error(error_kind::unsupported, "the dimension " + each.str().substr(0, 60) + "... has too many cases");
  }
  // If two operands differ by a constant, one of them always wins.
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t k = operands.size(); k-- > i + 1;)
      if (dim difference = operands[i] - operands[k]; difference.is_static()) {
        if (pick(difference.value(), std::int64_t{0}) == 0) operands[i] = operands[k];
        operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(k));
      }
  if (operands.size() == 1) return operands[0];
  // Factor out the terms that all operands have in common, and the smallest constant.
  dim_terms common = operands[0].terms();
  std::int64_t least = INT64_MAX;
  for (const dim& d : operands) {
    auto terms = d.terms();
    auto constant = terms.find(dim_product{});
    least = std::min(least, constant == terms.end() ? 0 : constant->second);
    std::erase_if(common, [&](const auto& term) {
      auto found = terms.find(term.first);
      return found == terms.end() || found->second != term.second;
    });
  }
  common.erase(dim_product{});
  dim outside = dim::from(std::move(common)) + dim(least);
  for (dim& d : operands) d = d - outside;
  std::sort(operands.begin(), operands.end(), [](const dim& x, const dim& y) { return x.str() < y.str(); });
  return outside + made_of(kind, name, std::move(operands), ',');
}

}  // namespace

bool dim_atom_order::operator()(const std::shared_ptr<const dim_atom>& a,
                                const std::shared_ptr<const dim_atom>& b) const {
  return a != b && a->text < b->text;
}

bool dim_atom_order::operator()(const dim_product& a, const dim_product& b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), *this);
}

dim dim::symbol(std::string_view name) {
  std::string clean(name);
  for (char& c : clean)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  if (clean.empty() || std::isdigit(static_cast<unsigned char>(clean[0]))) clean.insert(0, "d_");
  return from(std::make_shared<const dim_atom>(dim_atom{dim_atom::kind::symbol, std::move(clean), {}, {}}));
}

dim dim::min(const dim& a, const dim& b) {
  return extreme(dim_atom::kind::minimum, "min(", a, b, [](std::int64_t x, std::int64_t y) { return std::min(x, y); });
}

dim dim::max(const dim& a, const dim& b) {
  return extreme(dim_atom::kind::maximum, "max(", a, b, [](std::int64_t x, std::int64_t y) { return std::max(x, y); });
}

dim dim::floor_of_real(real_steps steps, std::vector<dim> operands) {
  if (std::ranges::all_of(operands, &dim::is_static)) {
    std::vector<std::int64_t> numbers;
    for (const dim& d : operands) numbers.push_back(d.value());
    const auto result = floor_of(steps, numbers);
    if (!result) throw error(error_kind::invalid_model, "a tensor dimension that is computed in floats is too large");
    return *result;
  }
  std::string text = "floor32(";
  for (const dim& d : operands) text += (text.back() == '(' ? "" : ",") + d.str();
  text += ':' + text_of(steps) + ')';
  if (text.size() > max_atom_text)
    throw error(error_kind::unsupported, "the dimension " + text.substr(0, 60) + "... is too long");
  return from(std::make_shared<const dim_atom>(
      dim_atom{dim_atom::kind::real, std::move(text), std::move(operands), std::move(steps)}));
}

dim dim::from(dim_terms terms) {
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms.begin()->first.empty()) return terms.begin()->second;
  dim result;
  result.expression_ = std::make_shared<const dim_terms>(std::move(terms));
  return result;
}

dim dim::from(std::shared_ptr<const dim_atom> atom) { return from(dim_terms{{dim_product{std::move(atom)}, 1}}); }

dim_terms dim::terms() const {
  if (expression_) return *expression_;
  dim_terms result;
  if (value_ != 0) result.emplace(dim_product{}, value_);
  return result;
}

bool dim::is_symbol() const {
  if (is_static() || expression_->size() != 1) return false;
  const auto& [atoms, coefficient] = *expression_->begin();
  return coefficient == 1 && atoms.size() == 1 && atoms[0]->is == dim_atom::kind::symbol;
}

std::int64_t dim::value() const {
  if (!is_static())
    throw error(error_kind::usage, "dimension '" + str() + "' has no value yet: give it one with --dim");
  return value_;
}

std::set<std::string> dim::symbols() const {
  std::set<std::string> found;
  if (is_static()) return found;
  for (const auto& term : *expression_)
    for (const auto& atom : term.first) {
      if (atom->is == dim_atom::kind::symbol) found.insert(atom->text);
      for (const dim& d : atom->operands) found.merge(d.symbols());
    }
  return found;
}

dim dim::substitute(const dim_bindings& bindings) const {
  if (is_static()) return *this;
  return replace(std::map<std::string, dim>(bindings.begin(), bindings.end()));
}

dim operator+(const dim& a, const dim& b) {
  if (a.is_static() && b.is_static()) return checked_add(a.value_, b.value_);
  auto terms = a.terms();
  for (const auto& [atoms, coefficient] : b.terms()) terms[atoms] = checked_add(terms[atoms], coefficient);
  return dim::from(std::move(terms));
}

dim operator-(const dim& a, const dim& b) {
  auto terms = a.terms();
  for (const auto& [atoms, coefficient] : b.terms()) terms[atoms] = checked_sub(terms[atoms], coefficient);
  return dim::from(std::move(terms));
}

dim operator*(const dim& a, const dim& b) {
  if (a.is_static() && b.is_static()) return checked_mul(a.value_, b.value_);
  auto left = a.terms(), right = b.terms();
  if (left.size() * right.size() > max_terms)
    throw error(error_kind::unsupported, "the dimension (" + a.str() + ")*(" + b.str() + ") has too many terms");
  dim_terms product;
  for (const auto& [x, c] : left)
    for (const auto& [y, d] : right) {
      dim_product atoms;
      std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(atoms), dim_atom_order{});
      auto& sum = product[atoms];
      sum = checked_add(sum, checked_mul(c, d));
    }
  return dim::from(std::move(product));
}

dim operator/(const dim& a, const dim& b) {
  if (b == dim(0)) throw error(error_kind::invalid_model, "a tensor dimension is divided by zero");
  if (b.is_static() && b.value_ < 0)
    return (dim(0) - a) / (dim(0) - b);  // checked: the smallest integer has no negative
  if (a.is_static() && b.is_static()) return a.value_ / b.value_ - (a.value_ % b.value_ < 0);
  if (b.is_static()) return divide_by_number(a, b.value_);
  dim quotient;
  if (divides_exactly(a, b, quotient)) return quotient;
  dim numerator = a, divisor = b;
  cancel(numerator, divisor);
  if (divisor.is_static()) return numerator / divisor;
  return made_of(dim_atom::kind::quotient, "floor(", {numerator, divisor}, '/');
}

bool operator==(const dim& a, const dim& b) {
  if (a.is_static() != b.is_static()) return false;
  if (a.is_static()) return a.value_ == b.value_;
  if (a.expression_ == b.expression_) return true;
  auto same_atom = [](const auto& x, const auto& y) { return x == y || x->text == y->text; };
  return std::equal(a.expression_->begin(), a.expression_->end(), b.expression_->begin(), b.expression_->end(),
                    [&](const auto& x, const auto& y) {
                      return x.second == y.second &&
                             std::equal(x.first.begin(), x.first.end(), y.first.begin(), y.first.end(), same_atom);
                    });
}

}  // namespace kiln
