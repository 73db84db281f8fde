// A tensor dimension: a number or a symbolic expression. An expression is a polynomial over named symbols and over
// quotients, minima and maxima of such polynomials ("batch", "2*seq+1", "floor(batch/2)", "min(512,seq)"), and over
// sizes that are computed in floats (real_size.hpp). A value type; symbolic dims share an immutable expression.
// Two dims compare equal if their canonical forms are equal. Then their values are equal too, but dims with equal
// values may have different canonical forms. Ranges of symbols are kept separately, in ir/dim_facts.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/real_size.hpp"

namespace kiln {

// Symbol name → value, from `--dim NAME=VALUE` or from the shapes of inputs.
using dim_bindings = std::map<std::string, std::int64_t>;

struct dim_atom;

// Orders atoms by their text, so that the canonical form does not depend on addresses.
struct dim_atom_order {
  bool operator()(const std::shared_ptr<const dim_atom>& a, const std::shared_ptr<const dim_atom>& b) const;
  bool operator()(const std::vector<std::shared_ptr<const dim_atom>>& a,
                  const std::vector<std::shared_ptr<const dim_atom>>& b) const;
};

// A sorted product of atoms. A power is a repeated atom. The empty product is 1.
using dim_product = std::vector<std::shared_ptr<const dim_atom>>;
// A sum of products with their coefficients, none of which is 0.
using dim_terms = std::map<dim_product, std::int64_t, dim_atom_order>;

class dim {
 public:
  dim(std::int64_t value = 0) : value_(value) {}
  static dim symbol(std::string_view name);  // characters outside [A-Za-z0-9_.] become '_'
  static dim parse(std::string_view text);   // inverse of str(); throws error{corrupted}
  static dim min(const dim& a, const dim& b);
  static dim max(const dim& a, const dim& b);
  // floor of what the steps compute from `operands`. Throws error{invalid_model} if that is too large.
  static dim floor_of_real(real_steps steps, std::vector<dim> operands);
  static dim from(dim_terms terms);
  static dim from(std::shared_ptr<const dim_atom> atom);

  bool is_static() const { return expression_ == nullptr; }
  bool is_symbol() const;
  std::int64_t value() const;  // throws error{usage} when symbolic
  std::string str() const;
  std::set<std::string> symbols() const;
  dim_terms terms() const;
  dim substitute(const dim_bindings& bindings) const;                 // unbound symbols stay
  dim replace(const std::map<std::string, dim>& replacements) const;  // the same, but replaces symbols with expressions

  friend dim operator+(const dim& a, const dim& b);
  friend dim operator-(const dim& a, const dim& b);
  friend dim operator*(const dim& a, const dim& b);
  // floor(a / b), simplified to a polynomial if b divides a exactly. Throws error{invalid_model} if b is 0.
  friend dim operator/(const dim& a, const dim& b);
  friend bool operator==(const dim& a, const dim& b);

 private:
  std::int64_t value_ = 0;
  std::shared_ptr<const dim_terms> expression_;
};

// Returns true and sets `quotient` if b divides a as a polynomial, for all values of the symbols.
bool divides_exactly(const dim& a, const dim& b, dim& quotient);

// An indivisible factor of a polynomial: a symbol, or a quotient, minimum or maximum of polynomials, or a size that is
// computed from polynomials in floats.
struct dim_atom {
  enum class kind : std::uint8_t { symbol, quotient, minimum, maximum, real };
  kind is = kind::symbol;
  std::string text;  // canonical: "seq", "floor(A/B)", "min(A,B,...)", "max(A,B,...)", "floor32(A,B,...:STEPS)"
  std::vector<dim> operands;  // quotient: numerator and divisor; symbol: none
  real_steps steps = {};      // of a real
};

}  // namespace kiln
