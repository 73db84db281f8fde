// A branch whose condition is a dimension, so it is decided before the program runs.
#pragma once

#include <vector>

#include "ir/operation.hpp"

namespace kiln {

// inputs: the arguments of both bodies. bodies: then, else, with the same parameters. `condition` is a dim that is 1
// for the first body and 0 for the second. The bodies' outputs may differ in their dimensions; each output dimension is
// an expression of the condition that selects the taken body's dimension. program::bind inlines the body once the
// condition is a number, so a choice is never executed.
struct choice {
  std::vector<dim> condition;

  std::string_view name() const { return "choice"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("condition", self.condition);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
  // Combines the output shapes of the bodies. Throws error{invalid_model} if they differ in number or type,
  // error{unsupported} if they differ in rank.
  std::vector<shape> merged(const std::vector<shape>& yes, const std::vector<shape>& no) const;
};

}  // namespace kiln
