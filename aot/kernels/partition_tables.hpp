// What kernel formation (partition.cpp) knows of each instruction of a module and of each kernel. Plain data.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/module.hpp"

namespace kiln::forming {

inline constexpr std::size_t none = static_cast<std::size_t>(-1);

// One use of a value by a fusion: the index map through which the value is read (0 means the fusion's own indices) and
// the number of elements that are read. `before_loop`: the elements are the queries of an attention with few of them,
// or the rows that it appends to its caches. It reads both once, before its loop.
struct reading {
  std::size_t fusion;
  std::size_t map;
  double count;
  bool before_loop = false;
};

struct node {
  instruction* at = nullptr;
  std::size_t fusion = none;  // set for members
  bool alias = false;         // a reshape that stays in the module
  bool in_memory = false;     // some reader needs the result in memory
  bool inlined = false;
  bool window = false;    // a depthwise convolution; belongs to the kernel that normalizes its result
  bool prologue = false;  // part of the dequantization of a product's 4-bit weights; belongs to the product's kernel
  std::vector<reading> readings{};
};

struct group {
  std::vector<std::size_t> members;  // node numbers, ascending
  std::size_t unit = 0;              // number of its first member, its unit in kernel_order
  bool anchored = false;
  std::size_t anchor = 0;      // number of the anchor, if `anchored`
  std::size_t operations = 0;  // members and inlined copies
  const std::vector<dim>* dims = nullptr;
};

}  // namespace kiln::forming
