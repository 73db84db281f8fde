// Runs the `prepare` launches of native kernels (packing of weights) whose inputs are constants, once, while a plan is
// being built. On the host, results come from the prepared_store if it has them. On a GPU they stay in device memory,
// where programs that are loaded at the same time share them. Within a plan, equal constants that are packed by the
// same code are prepared only once. Used by one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/literal.hpp"
#include "runtime/device.hpp"
#include "runtime/prepared_store.hpp"

namespace kiln {

struct prepare_request {
  const native_kernel& kernel;
  std::string payload;                                         // hex hash of the kernel
  std::vector<const literal*> constants;                       // per input of the kernel; null if not a constant
  std::function<const std::byte*(std::size_t input)> address;  // device address of a constant input
  std::function<content_hash(std::size_t input)> hash;         // hash of a constant input
  std::function<kernel_handle(const std::string& symbol)> function;
  // If set, only the scratch buffers that some launch needs for which this returns true are prepared. The launches that
  // would prepare the others still count as done: run() is called again for these buffers when they are needed.
  std::function<bool(std::size_t launch)> needed = {};
};

struct prepared_kernel {
  std::vector<prepared_bytes> scratch;  // per scratch buffer; without an owner: not prepared, the run provides it
  std::vector<bool> done;               // per launch: already executed
  std::vector<bool> later;              // per scratch buffer: to be prepared when it is needed
};

class preparer {
 public:
  preparer(device& target, prepared_store* store)
      : device_(target), store_(target.info().host_memory ? store : nullptr) {}

  prepared_kernel run(const prepare_request& request);

  std::size_t bytes() const { return bytes_; }  // total size of distinct prepared buffers
  std::size_t found() const { return found_; }  // found in the store or on the device
  std::size_t made() const { return made_; }    // made by launches

 private:
  std::optional<prepared_bytes> find(const content_hash& key, std::size_t bytes);
  prepared_bytes keep(const content_hash& key, std::shared_ptr<const device_memory> memory);
  device& device_;
  prepared_store* store_;
  std::map<content_hash, prepared_bytes> known_;
  std::size_t bytes_ = 0, found_ = 0, made_ = 0;
};

}  // namespace kiln
