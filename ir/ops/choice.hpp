// A branch that dimensions decide, before the program runs.
#pragma once

#include <vector>

#include "ir/operation.hpp"

namespace kiln {

// inputs: the arguments of both bodies; bodies: then, else, with the same parameters; `condition` is one dim, 1 for the
// first body and 0 for the second. The bodies' outputs may differ in their dimensions: an output has those of the body
// that is taken, as expressions of the condition. program::bind puts the body in place once the condition is a number,
// so it is never run.
struct choice {
  std::vector<dim> condition;

  std::string_view name() const { return "choice"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("condition", self.condition);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
  // The outputs' shapes from those of the bodies. Throws error{invalid_model} where they differ in number or type,
  // error{unsupported} where they differ in rank.
  std::vector<shape> merged(const std::vector<shape>& yes, const std::vector<shape>& no) const;
};

}  // namespace kiln
