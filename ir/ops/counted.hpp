// How a result whose size depends on data leaves the main module.
#pragma once

#include "ir/ops/structure.hpp"

namespace kiln {

// inputs: data, count i64[1]. The data as it is, of which only the first `count` along `axis` are meant; what follows
// is padding. Only outputs of the main module are such values (nested for several axes), and every count is an output
// of the module too. Nothing is done at run time. evaluate() leaves the padding away, so its literal is smaller than
// the shape.
struct counted {
  std::int64_t axis = 0;

  std::string_view name() const { return "counted"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("axis", self.axis);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// The first `count` along `axis` of a tensor. Throws error{invalid_model} for a count that the axis cannot have.
literal first_of(const literal& data, std::int64_t axis, std::int64_t count);

}  // namespace kiln
