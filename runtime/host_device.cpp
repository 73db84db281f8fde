#include "runtime/host_device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>

#include "ir/error.hpp"
#include "runtime/arena.hpp"
#include "runtime/host_features.hpp"
#include "runtime/host_kernel.hpp"
#include "runtime/host_symbols.hpp"
#include "runtime/object_loader.hpp"

namespace kiln {
namespace {

constexpr std::size_t huge_page = 2u << 20;
// The target whose code every processor of this architecture runs.
constexpr std::string_view baseline_target = this_architecture == cpu_architecture::aarch64 ? "armv8-a" : "x86-64";

// Allocations of at least this size are aligned to huge pages and request them, which reduces TLB misses in large
// arenas.
std::size_t alignment_for(std::size_t bytes) { return bytes >= huge_page ? huge_page : arena_alignment; }

std::string processor_name() {
  // Linux on 64-bit Arm has numbers for cores and no names.
  if (const host_core core = find_host_core(); core.designer) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "Arm core 0x%02x-0x%03x", core.designer, core.part);
    return text.data();
  }
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown processor";
}

class host_library final : public kernel_library {
 public:
  explicit host_library(code_image image) : image_(std::move(image)) {}
  kernel_handle find(std::size_t index, std::string_view symbol) const override { return {image_.find(index, symbol)}; }

 private:
  code_image image_;
};

class host_event final : public device_event {
 public:
  void record(device_stream*) override { time_ = std::chrono::steady_clock::now(); }
  void synchronize() override {}
  bool happened() const override { return true; }
  double milliseconds_since(const device_event& earlier) const override {
    return std::chrono::duration<double, std::milli>(time_ - static_cast<const host_event&>(earlier).time_).count();
  }

 private:
  std::chrono::steady_clock::time_point time_;
};

}  // namespace

host_device::host_device(unsigned threads, bool pinned, host_allocator allocator)
    : allocator_(std::move(allocator)), team_(threads, pinned) {
  auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)),
       page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  info_ = {.name = "host",
           .description = processor_name(),
           .family = "cpu",
           .threads = team_.size(),
           .memory_bytes = pages * page};
}

bool host_device::runs(std::string_view target) const {
  if (target == "native" || target == baseline_target) return true;
  const cpu_row* row = find_cpu_row(target);
  return row && runs_on_host(*row);
}

device_memory host_device::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  const bool ours = !allocator_.allocate;
  const std::size_t alignment = ours ? alignment_for(bytes) : arena_alignment;
  void* data =
      ours ? ::operator new(bytes, std::align_val_t(alignment), std::nothrow) : allocator_.allocate(bytes, alignment);
  if (!data)
    throw error(error_kind::out_of_memory,
                "device host: there is no memory for " + std::to_string(bytes) + " bytes; use smaller dimensions");
  if (reinterpret_cast<std::uintptr_t>(data) % alignment) {
    release(data, bytes);
    throw error(error_kind::usage,
                "allocate: the memory that it gave is not aligned to " + std::to_string(alignment) + " bytes");
  }
  if (alignment == huge_page)
    ::madvise(data, bytes / huge_page * huge_page, MADV_HUGEPAGE);  // only a hint: failure costs only speed
  return device_memory(*this, data, bytes);
}

void host_device::release(void* data, std::size_t bytes) noexcept {
  if (allocator_.release) allocator_.release(data, bytes);
  else ::operator delete(data, std::align_val_t(alignment_for(bytes)));
}

void host_device::copy(void* to, const void* from, std::size_t bytes, device_stream*) {
  if (bytes) std::memmove(to, from, bytes);
}

void host_device::fill_zero(void* to, std::size_t bytes, device_stream*) {
  if (bytes) std::memset(to, 0, bytes);
}

std::unique_ptr<device_stream> host_device::make_stream() { return std::make_unique<device_stream>(); }

std::unique_ptr<device_stream> host_device::borrow_stream(void*) {
  throw error(error_kind::unsupported, "the host has no streams: use the stream with the GPU that it belongs to");
}

std::unique_ptr<device_event> host_device::make_event() { return std::make_unique<host_event>(); }

std::shared_ptr<const kernel_library> host_device::load(std::span<const native_kernel* const> kernels) {
  std::vector<std::span<const std::byte>> objects;
  for (const native_kernel* kernel : kernels) objects.emplace_back(kernel->object);
  return std::make_shared<host_library>(code_image(objects, find_host_symbol));
}

namespace {

host_kernel kernel_of(const launch_request& request) {
  return {reinterpret_cast<host_kernel::entry>(const_cast<void*>(request.kernel.function))};
}

}  // namespace

void host_device::launch(const launch_request& request) noexcept {
  const host_kernel kernel = kernel_of(request);
  void* const* buffers = request.buffers.data();
  const std::int64_t grid = request.grid, blocks = request.blocks;
  if (blocks == 1) {
    team_.run(grid, [kernel, buffers](std::int64_t begin, std::int64_t end) { kernel(buffers, begin, end); });
    return;
  }
  const std::int64_t arguments = static_cast<std::int64_t>(request.buffers.size()) / blocks;
  if (const std::int64_t at_once = request.items_at_once; at_once && grid >= static_cast<std::int64_t>(team_.size())) {
    team_.run(grid, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin; first < end; first += at_once)
        for (std::int64_t block = 0; block < blocks; ++block)
          kernel(buffers + block * arguments, first, std::min(first + at_once, end));
    });
    return;
  }
  team_.run(grid * blocks, [=](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t block = begin / grid, first = begin - block * grid,
                         count = std::min(end - begin, grid - first);
      kernel(buffers + block * arguments, first, first + count);
      begin += count;
    }
  });
}

void host_device::launch_together(std::span<const launch_request> requests) noexcept {
  std::int64_t items = 0;
  for (const launch_request& request : requests) items += request.grid;
  team_.run(items, [requests](std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0;  // item of the request
    for (const launch_request& request : requests) {
      const std::int64_t low = std::max(begin, first), high = std::min(end, first + request.grid);
      if (low < high) kernel_of(request)(request.buffers.data(), low - first, high - first);
      first += request.grid;
    }
  });
}

}  // namespace kiln
