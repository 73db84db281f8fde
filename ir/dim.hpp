// A tensor dimension: a number, or a polynomial over named symbols ("batch", "2*seq+1", "floor(batch/2)").
// A value type; symbolic dims share an immutable expression. Dims compare equal when their canonical forms do.
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

class dim {
 public:
  dim(std::int64_t value = 0) : value_(value) {}
  static dim symbol(std::string_view name);  // characters outside [A-Za-z0-9_.] become '_'
  static dim parse(std::string_view text);   // inverse of str(); throws error{corrupted}

  bool is_static() const { return expression_ == nullptr; }
  std::int64_t value() const;  // throws error{usage} when symbolic
  std::string str() const;
  std::set<std::string> symbols() const;
  dim substitute(const dim_bindings& bindings) const;  // symbols without a binding stay

  friend dim operator+(const dim& a, const dim& b);
  friend dim operator-(const dim& a, const dim& b);
  friend dim operator*(const dim& a, const dim& b);
  // a / b where it divides exactly as a polynomial, floor(a/b) for a static positive b; throws error{unsupported} otherwise.
  friend dim operator/(const dim& a, const dim& b);
  friend bool operator==(const dim& a, const dim& b);

 private:
  // Sum of coefficient × product of atoms; an atom is a symbol or "floor(POLY/N)". Sorted by atoms, no zero coefficients.
  using polynomial = std::map<std::vector<std::string>, std::int64_t>;
  static dim from(polynomial terms);
  polynomial terms() const;
  static std::string str(const polynomial& terms);

  std::int64_t value_ = 0;
  std::shared_ptr<const polynomial> expression_;
};

}  // namespace kiln
