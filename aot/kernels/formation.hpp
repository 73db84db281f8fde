// Kernel formation: replaces everything that computes, in the main module and in every body of If and Loop, by code
// objects in MLIR bytecode. What is left besides them are parameters, constants, reshapes (aliases at run time), if and
// loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/hash.hpp"
#include "ir/program.hpp"

namespace kiln {

// Writes a cluster as the payload of a portable code object (mlir_bridge's write_kernel; a test may use the cluster's
// text).
using kernel_writer = std::function<std::vector<std::byte>(const module& cluster, std::string_view symbol)>;

// What a payload was made from, for tests and reports.
struct formed_kernel {
  content_hash payload;
  std::string symbol;
  std::shared_ptr<const module> cluster;
  std::size_t uses = 0;  // code objects with this payload
};

// Payloads go into the program's kernel table, equal ones once. The kernels are appended to `formed` in the order of
// their first use. An instruction that was in several kernels is in the origins of each.
void form_kernels(program& p, const kernel_writer& write, std::vector<formed_kernel>* formed = nullptr);

}  // namespace kiln
