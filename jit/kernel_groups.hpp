// Code objects of a program that become the same native kernel: the same payload for the same concrete shapes. Groups
// are what is compiled, cached and tuned. They refer to instructions of the program, which must outlive them unchanged.
#pragma once

#include <map>
#include <vector>

#include "ir/program.hpp"

namespace kiln {

struct kernel_group {
  code_object portable;  // of the first of them
  const instruction* first = nullptr;
  std::vector<shape> inputs, outputs;  // static
  int occurrences = 0;
};

struct kernel_groups {
  std::vector<kernel_group> list;                // in the program's order
  std::map<const instruction*, std::size_t> of;  // which group a code object belongs to
};

// All modules, the bodies of If and Loop too; native code objects are left out, and those whose outputs are empty.
// Throws error{usage} for open dimensions.
kernel_groups group_code_objects(const program& bound);

}  // namespace kiln
