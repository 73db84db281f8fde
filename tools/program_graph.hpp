// Drawings of a program: a node for each kernel and for each operation that is not a kernel; of a kernel: a node for
// each operation that was fused into it. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/module.hpp"
#include "tools/kernel_sketch.hpp"
#include "tools/layered_graph.hpp"

namespace kiln::tools {

// Constants are not drawn, and a value that only has another shape is its source. A kernel links to "#kernel-HASH".
layered_graph graph_of(const module& m);
layered_graph graph_of(const kernel_sketch& kernel);

// Where the intermediate values of a module would lie in one arena, and when they are needed: what liveness alone says,
// with the packing of the runtime. A target may need scratch memory besides.
struct planned_value {
  std::string name;  // of the kernel or operation
  shape type;
  std::size_t bytes = 0, offset = 0;
  std::size_t first = 0, last = 0;  // steps
};
struct memory_plan {
  std::vector<planned_value> values;
  std::size_t steps = 0, bytes = 0, sum = 0, lower_bound = 0;
};
// All shapes must be static.
memory_plan plan_memory(const module& m);

}  // namespace kiln::tools
