// A tensor dimension: a number, or a polynomial over named symbols and quotients, minima and maxima of such polynomials
// ("batch", "2*seq+1", "floor(batch/2)", "min(512,seq)"). A value type; symbolic dims share an immutable expression.
// Dims compare equal when their canonical forms do. Equal canonical forms have equal values; the reverse need not hold.
// What is known about the symbols (their ranges) is kept apart, in ir/dim_facts.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// Symbol name → value, from `--dim NAME=VALUE` or from the shapes of inputs.
using dim_bindings = std::map<std::string, std::int64_t>;

struct dim_atom;

// Atoms are ordered by their text, so that a canonical form does not depend on addresses.
struct dim_atom_order {
  bool operator()(const std::shared_ptr<const dim_atom>& a, const std::shared_ptr<const dim_atom>& b) const;
  bool operator()(const std::vector<std::shared_ptr<const dim_atom>>& a,
                  const std::vector<std::shared_ptr<const dim_atom>>& b) const;
};

// A product of atoms, sorted; an atom occurs as often as its power says. The empty product is 1.
using dim_product = std::vector<std::shared_ptr<const dim_atom>>;
// A sum of products, each with a coefficient that is not 0.
using dim_terms = std::map<dim_product, std::int64_t, dim_atom_order>;

class dim {
 public:
  dim(std::int64_t value = 0) : value_(value) {}
  static dim symbol(std::string_view name);  // characters outside [A-Za-z0-9_.] become '_'
  static dim parse(std::string_view text);   // inverse of str(); throws error{corrupted}
  static dim min(const dim& a, const dim& b);
  static dim max(const dim& a, const dim& b);
  static dim from(dim_terms terms);
  static dim from(std::shared_ptr<const dim_atom> atom);

  bool is_static() const { return expression_ == nullptr; }
  bool is_symbol() const;
  std::int64_t value() const;  // throws error{usage} when symbolic
  std::string str() const;
  std::set<std::string> symbols() const;
  dim_terms terms() const;
  dim substitute(const dim_bindings& bindings) const;                 // symbols without a binding stay
  dim replace(const std::map<std::string, dim>& replacements) const;  // the same, with expressions in place of symbols

  friend dim operator+(const dim& a, const dim& b);
  friend dim operator-(const dim& a, const dim& b);
  friend dim operator*(const dim& a, const dim& b);
  // floor(a / b); a polynomial where b divides a exactly. Throws error{invalid_model} for a b of 0.
  friend dim operator/(const dim& a, const dim& b);
  friend bool operator==(const dim& a, const dim& b);

 private:
  std::int64_t value_ = 0;
  std::shared_ptr<const dim_terms> expression_;
};

// The quotient where b divides a as a polynomial, whatever the values of the symbols; false otherwise.
bool divides_exactly(const dim& a, const dim& b, dim& quotient);

// What polynomials are made of.
struct dim_atom {
  enum class kind : std::uint8_t { symbol, quotient, minimum, maximum };
  kind is = kind::symbol;
  std::string text;           // "seq", "floor(A/B)", "min(A,B,...)", "max(A,B,...)": canonical
  std::vector<dim> operands;  // none for a symbol; numerator and divisor of a quotient
};

}  // namespace kiln
