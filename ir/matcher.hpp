// Declarative patterns over values. A pattern constrains an instruction and its inputs and gives names to the values it
// finds. A matcher is a value; matching only reads the module. The rewrites of aot/passes use it.
//
//   auto x = match::any().as("x");
//   auto scale = match::op<broadcast>().inputs(...match::same("x")...);
//   auto rms = match::function(scalar_function::mul).commuted(x, scale);
//   match::captures found;
//   if (rms(v, found)) use(found["x"]);
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

// The values that a match has named.
class captures {
 public:
  value operator[](std::string_view name) const;  // throws error{internal} if nothing has this name
  value find(std::string_view name) const;        // null if nothing has this name
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

  // A failed match removes the captures that it made.
  bool operator()(value v, captures& found) const;

  // The names of the operations that can match; empty if any operation can. aot/passes/rewrite.cpp indexes its patterns
  // by these names.
  const std::vector<std::string_view>& operations() const { return operations_; }

  matcher as(std::string name) const;                        // captures the value under `name`
  matcher when(std::function<bool(value)> predicate) const;  // also requires the predicate
  matcher single_use() const;  // also requires exactly one use by an instruction (module outputs do not count)
  matcher inputs(std::vector<matcher> operands) const;  // also requires exactly these operands, in order
  matcher commuted(matcher a, matcher b) const;         // also requires two operands, in either order

 private:
  test test_;
  std::vector<std::string_view> operations_;
};

matcher any();
matcher constant();                         // a `constant` instruction
matcher same(std::string name);             // the value already captured under `name`
matcher either(std::vector<matcher> ways);  // the first alternative that matches
matcher function(scalar_function f);        // an elementwise operation with this function

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
