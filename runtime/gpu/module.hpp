// Kernels loaded on a GPU. Modules are cached under the hashes of their objects by weak references, so programs with
// equal kernels share one. Any thread. Throws error{compile_failed} with the driver's log if the driver rejects an
// object, error{corrupted} for damaged objects.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ir/hash.hpp"
#include "runtime/gpu/handles.hpp"

namespace kiln::gpu {

class module {
 public:
  module(state& of, std::span<const std::byte> object);
  ~module();
  module(const module&) = delete;
  module& operator=(const module&) = delete;
  // Returns the function, ready to be launched with this much dynamic shared memory. Valid as long as the module.
  const function& find(std::string_view symbol, std::int64_t lds_bytes);

 private:
  struct found {
    function what;
    std::int64_t lds_bytes = 0;  // the limit set so far
  };
  state& state_;
  void* native_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, found, std::less<>> functions_;
};

class module_table {
 public:
  explicit module_table(state& of) : state_(of) {}
  std::shared_ptr<module> load(std::span<const std::byte> object);

 private:
  state& state_;
  std::mutex mutex_;
  std::map<content_hash, std::weak_ptr<module>> modules_;
};

class library final : public kernel_library {
 public:
  library(module_table& table, std::span<const native_kernel* const> kernels);
  kernel_handle find(std::size_t index, std::string_view symbol) const override;

 private:
  struct entry {
    std::shared_ptr<module> code;
    std::map<std::string, std::int64_t, std::less<>> lds_bytes;  // per symbol: the maximum over its launches
  };
  std::vector<entry> entries_;
};

// Compiles PTX to a cubin for this device with the driver. Other objects are returned unchanged.
std::vector<std::byte> to_machine_code(state& of, std::span<const std::byte> object);

}  // namespace kiln::gpu
