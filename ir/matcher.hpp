// Declarative patterns over values: what an instruction must be, what its inputs must be, and names for what was found.
// A matcher is a value; matching reads the module and changes nothing. Used by the rewrites of aot/passes.
//
//   auto x = match::any().as("x");
//   auto rms = match::function(scalar_function::mul).commuted(x,
//   match::op<broadcast>().inputs(...match::same("x")...)); match::captures found; if (rms(v, found)) use(found["x"]);
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/module.hpp"
#include "ir/ops/elementwise.hpp"

namespace kiln::match {

// The values that a match gave names to.
class captures {
 public:
  value operator[](std::string_view name) const;  // throws error{internal} where the pattern has no such name
  value find(std::string_view name) const;        // null where nothing has been captured under that name
  void set(std::string_view name, value v) { entries_.emplace_back(name, v); }
  std::size_t mark() const { return entries_.size(); }
  void rewind(std::size_t mark) { entries_.resize(mark); }

 private:
  std::vector<std::pair<std::string, value>> entries_;
};

class matcher {
 public:
  using test = std::function<bool(value, captures&)>;
  matcher(test t, std::vector<std::string_view> operations = {})
      : test_(std::move(t)), operations_(std::move(operations)) {}

  // Captures made by an attempt that fails are taken back.
  bool operator()(value v, captures& found) const;

  // The names of the operations that can match; empty where any can. A list of patterns is indexed by it
  // (aot/passes/rewrite.cpp).
  const std::vector<std::string_view>& operations() const { return operations_; }

  matcher as(std::string name) const;                        // captures the value
  matcher when(std::function<bool(value)> predicate) const;  // and this holds
  matcher single_use() const;  // and one use by an instruction (module outputs are not counted)
  matcher inputs(std::vector<matcher> operands) const;  // and exactly these operands, in order
  matcher commuted(matcher a, matcher b) const;         // and two operands, in either order

 private:
  test test_;
  std::vector<std::string_view> operations_;
};

matcher any();
matcher constant();                         // a `constant` instruction
matcher same(std::string name);             // the value captured before under `name`
matcher either(std::vector<matcher> ways);  // the first that matches
matcher function(scalar_function f);        // an elementwise operation

template <class Op>
matcher op(std::function<bool(const Op&)> predicate = {}) {
  std::vector<std::string_view> operations;
  if constexpr (!std::is_same_v<Op, elementwise>)
    operations.push_back(Op().name());  // the name of an elementwise operation is its function's
  return matcher(
      [predicate = std::move(predicate)](value v, captures&) {
        const Op* found = v.producer->op().get_if<Op>();
        return found && (!predicate || predicate(*found));
      },
      std::move(operations));
}

}  // namespace kiln::match
