// Kernel formation: replaces all computation, in the main module and in every body of If and Loop, by code objects in
// MLIR bytecode. Only parameters, constants, reshapes (aliases at run time), if and loop remain besides them.
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

// Serializes a fusion as the payload of a portable code object. The compiler passes mlir_bridge's write_kernel; a test
// may use the fusion's text.
using kernel_writer = std::function<std::vector<std::byte>(const module& fusion, std::string_view symbol)>;

// Describes where a payload came from, for tests and reports.
struct formed_kernel {
  content_hash payload;
  std::string symbol;
  std::shared_ptr<const module> fusion;
  std::size_t uses = 0;  // code objects with this payload
};

// Adds the payloads to the program's kernel table; equal payloads are stored once. The kernels are appended to `formed`
// in the order of their first use. If an instruction was copied into several kernels, it is listed in the origins of
// each.
void form_kernels(program& p, const kernel_writer& write, std::vector<formed_kernel>* formed = nullptr);

}  // namespace kiln
