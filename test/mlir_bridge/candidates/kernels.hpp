// Kernels of every kind that has choices, small and with odd extents, for the tests of candidates.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/module.hpp"

namespace kiln::test {

struct named_kernel {
  std::string name;
  std::unique_ptr<module> fusion;
};

std::vector<named_kernel> kernels_of_every_kind();

}  // namespace kiln::test
