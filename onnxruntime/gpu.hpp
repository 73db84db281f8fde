// A GPU of this machine as ONNX Runtime sees it: memory that it allocates, and copies between this memory and the
// host's. Any thread may use a GPU. It is opened when somebody needs its memory.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "onnxruntime/api.hpp"
#include "onnxruntime/kiln_library.hpp"

namespace kiln::ort {

class gpu {
 public:
  // `kind` is "cuda" or "hip".
  gpu(const std::string& kind, int ordinal);

  const std::string& name() const { return name_; }  // "cuda:0"
  int ordinal() const { return ordinal_; }
  std::uint32_t vendor() const { return vendor_; }  // of PCI
  const OrtMemoryInfo* memory() const { return memory_.get(); }

  // Throw a failure (kiln_library.hpp) with the message of the C interface.
  void* allocate(std::size_t bytes);
  void upload(void* to, const void* from, std::size_t bytes);
  void download(void* to, const void* from, std::size_t bytes);
  void copy(void* to, const void* from, std::size_t bytes);
  void free(void* data) noexcept;

 private:
  kiln_device* opened();
  struct release {
    void operator()(OrtMemoryInfo* info) const { runtime().api->ReleaseMemoryInfo(info); }
  };
  std::string name_;
  int ordinal_;
  std::uint32_t vendor_;
  std::unique_ptr<OrtMemoryInfo, release> memory_;
  std::mutex mutex_;  // guards device_
  std::unique_ptr<kiln_device, void (*)(kiln_device*)> device_{nullptr, nullptr};
};

using gpu_list = std::vector<std::shared_ptr<gpu>>;

// The GPUs that Kiln can use; none if its library is missing.
gpu_list find_gpus();

// The caller deletes both as what they are: an allocator by release_allocator(), copies by
// OrtDataTransferImpl::Release.
OrtAllocator* make_allocator(std::shared_ptr<gpu> of);
void release_allocator(OrtAllocator* made) noexcept;
OrtDataTransferImpl* make_copies(gpu_list between);

}  // namespace kiln::ort
