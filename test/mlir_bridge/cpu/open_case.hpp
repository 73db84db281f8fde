// What the tests of open kernels share: names of sizes, and bodies of fusions.
#pragma once

#include <vector>

#include "harness.hpp"

namespace kiln::test {

inline const dim batch = dim::symbol("batch"), seq = dim::symbol("seq"), past = dim::symbol("past");

using arguments = std::vector<value>;

inline std::vector<dim_bindings> sizes_of_two() {
  std::vector<dim_bindings> result;
  for (std::int64_t b : {1, 3})
    for (std::int64_t s : {1, 2, 7, 8, 16, 33, 130, 1000}) result.push_back({{"batch", b}, {"seq", s}});
  return result;
}

inline value add(module& m, value a, value b) { return m.add(elementwise{scalar_function::add}, {a, b}); }

}  // namespace kiln::test
