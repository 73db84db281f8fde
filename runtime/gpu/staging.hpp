// Copies between host and device through a ring of pinned host buffers. The caller's memory may therefore be pageable
// and is reusable on return, and copies run at full speed. Any thread; one copy at a time. Large uploads take a second
// thread.
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "runtime/gpu/handles.hpp"

namespace kiln::gpu {

class staging {
 public:
  explicit staging(state& of);
  ~staging();
  // `from` may be reused on return. The copy takes effect in stream order.
  void upload(void* to, const void* from, std::size_t bytes, void* stream);
  // Waits for the stream's work so far. The copy is complete on return.
  void download(void* to, const void* from, std::size_t bytes, void* stream);

 private:
  struct chunk {
    std::mutex filling;
    std::unique_ptr<raw_event> last_use;
    std::byte* memory = nullptr;
    bool used = false;
  };
  chunk& next();  // the next chunk, waiting until it is free
  void wait_until_free(chunk& c);
  void send(void* to, const void* from, std::size_t bytes, void* stream, chunk& through);
  void release() noexcept;
  state& state_;
  std::mutex mutex_;
  std::array<chunk, 4> chunks_;
  std::size_t turn_ = 0;
};

}  // namespace kiln::gpu
