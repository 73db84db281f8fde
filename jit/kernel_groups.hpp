// Groups of code objects that become the same native kernel: the same payload with the same concrete shapes. A group is
// the unit of compiling, caching and tuning. Groups point to instructions of the program, which must outlive them and
// stay unchanged.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace kiln {

struct kernel_group {
  code_object portable;  // the first code object of the group
  const instruction* first = nullptr;
  std::vector<shape> inputs, outputs;
  int occurrences = 0;
};

struct kernel_groups {
  std::vector<kernel_group> list;                // in the program's order
  std::map<const instruction*, std::size_t> of;  // index of the group of each code object
};

// The same for the code objects of one group.
content_hash group_identity(const std::string& payload, const std::vector<shape>& inputs,
                            const std::vector<shape>& outputs);

// Groups the code objects of all modules, including the bodies of If and Loop. Native code objects and those with empty
// outputs are left out. Throws error{usage} if a dimension is open, unless `open` allows it (jit_options::open).
kernel_groups group_code_objects(const program& bound, bool open = false);

}  // namespace kiln
