// Runs the `prepare` launches of native kernels (packing of weights) whose inputs are constants, once, while a plan is built. Results
// come from the prepared_store where it has them; equal content is prepared once per plan. Used by one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/literal.hpp"
#include "runtime/device.hpp"
#include "runtime/prepared_store.hpp"

namespace kiln {

struct prepare_request {
  const native_kernel& kernel;
  std::string payload;                       // hex hash of the kernel
  std::vector<const literal*> constants;     // per input of the kernel, null where it is not a constant
  std::vector<const std::byte*> addresses;   // where the device reads those constants
};

struct prepared_kernel {
  std::vector<prepared_bytes> scratch;  // per scratch buffer; without owner: not prepared, the run provides it
  std::vector<bool> done;               // per launch: needs not run any more
};

class preparer {
 public:
  preparer(device& target, prepared_store* store) : device_(target), store_(store) {}

  prepared_kernel run(const prepare_request& request, const std::function<kernel_handle(const std::string& symbol)>& function);

  std::size_t bytes() const { return bytes_; }  // of distinct prepared buffers
  std::size_t found() const { return found_; }  // in the store
  std::size_t made() const { return made_; }    // by running launches

 private:
  const content_hash& hash_of(const literal& constant);
  device& device_;
  prepared_store* store_;
  std::map<content_hash, prepared_bytes> known_;
  std::map<std::pair<const std::byte*, std::size_t>, content_hash> hashes_;
  std::size_t bytes_ = 0, found_ = 0, made_ = 0;
};

}  // namespace kiln
