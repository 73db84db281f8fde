// The worker's side of compile_worker.hpp: requests to responses, in a process of its own. It parses a payload once and
// keeps it, specialized for the request's shapes; every compile starts from a clone. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <span>
#include <vector>

#include "ir/hash.hpp"
#include "ir/shape.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"

namespace kiln {

class compile_answers {
 public:
  // Errors become responses; nothing is thrown. `accepted` is called when the payload has been read, verified and
  // specialized.
  std::vector<std::byte> answer(std::span<const std::byte> request, const std::function<void()>& accepted);

 private:
  struct kept_kernel {
    content_hash identity;  // of the payload and the shapes
    portable_kernel kernel;
  };
  portable_kernel clone_of(std::span<const std::byte> payload, const std::vector<shape>& inputs,
                           const std::vector<shape>& outputs);

  compiler_context context_;
  std::list<kept_kernel> kept_;  // the most recently used first
};

}  // namespace kiln
