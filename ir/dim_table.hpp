// The distinct dims of a program, evaluated together. A dim that is evaluated alone is a polynomial with maps and
// shared atoms; here all of them are a flat list of sums, so that hundreds take microseconds. Const functions may be
// called by any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.hpp"

namespace kiln {

class dim_table {
 public:
  using index = std::uint32_t;

  // Equal dims have the same index.
  index add(const dim& d);
  std::size_t size() const { return dims_.size(); }
  // Returns the values of all dims, by index. nullopt if a symbol has no value, a divisor is 0 or a value overflows
  // 64 bits: then dim::substitute() of one of them throws.
  std::optional<std::vector<std::int64_t>> evaluate(const dim_bindings& values) const;

 private:
  // Nodes are in the order of evaluation: each refers to earlier ones.
  enum class kind : std::uint8_t { symbol, sum, quotient, minimum, maximum, real };
  struct node {
    kind is;
    std::uint32_t first, count;  // symbol: index in symbols_; sum: in terms_; otherwise in operands_
    std::uint32_t steps = 0;     // real: index in steps_
  };
  // factor * the product of nodes
  struct term {
    std::int64_t factor;
    std::uint32_t first, count;  // in operands_
  };
  std::uint32_t add_node(const dim& d);
  std::uint32_t add_node(const dim_atom& atom);
  std::optional<std::int64_t> value_of(const node& n, const std::vector<std::int64_t>& known) const;

  std::vector<node> nodes_;
  std::vector<term> terms_;
  std::vector<std::uint32_t> operands_;
  std::vector<std::string> symbols_;
  std::vector<real_steps> steps_;
  std::vector<std::uint32_t> dims_;  // index to node
  std::map<std::string, std::uint32_t> known_sums_, known_atoms_;
  std::map<std::uint32_t, index> index_of_node_;
};

}  // namespace kiln
