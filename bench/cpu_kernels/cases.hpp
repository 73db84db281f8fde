// The benchmark's cases: matrix products and convolutions of well-known models.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/module.hpp"
#include "ir/ops/contraction.hpp"

namespace kiln::bench {

struct kernel_case {
  std::string name;
  std::vector<std::int64_t> left, right;  // dot: [m, k], [k, n]; convolution: channels_last image and weights
  operation op;
  bool relu = false;  // bias and relu as the epilogue
};

const std::vector<kernel_case>& kernel_cases();
std::unique_ptr<module> make_fusion(const kernel_case& c);
// Work of a case in units of 10^9 multiplications and additions.
double giga_operations(const kernel_case& c);

}  // namespace kiln::bench
