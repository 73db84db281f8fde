// The worker's side of compile_worker.hpp: answers requests in a separate process. It parses each payload once and
// keeps it, specialized for the request's shapes. Every compilation starts from a clone. Used by one thread.
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
  // Never throws: errors become responses. `accepted` is called after the payload has been read, verified and
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
