#include "runtime/prepare.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "runtime/arena.hpp"

namespace kiln {
namespace {

// Launches that can run now: `prepare` launches that read only constants, and share scratch memory only with such launches.
std::vector<bool> constant_launches(const prepare_request& request) {
  const auto& launches = request.kernel.launches;
  std::vector<bool> constant(launches.size());
  std::vector<bool> varies(request.kernel.scratch.size());  // scratch that a run must fill itself
  for (std::size_t l = 0; l < launches.size(); ++l)
    constant[l] = launches[l].prepare && std::ranges::all_of(launches[l].arguments, [&](const launch_argument& a) {
                    return a.kind == buffer_kind::scratch || (a.kind == buffer_kind::input && request.constants[a.index] != nullptr);
                  });
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t l = 0; l < launches.size(); ++l) {
      if (!launches[l].prepare) continue;
      for (const launch_argument& a : launches[l].arguments) {
        if (a.kind != buffer_kind::scratch) continue;
        if (!constant[l] && !varies[a.index]) varies[a.index] = changed = true;
        if (constant[l] && varies[a.index]) constant[l] = false, changed = true;
      }
    }
  }
  return constant;
}

// Packed buffers have padding that no launch writes; zeros there make equal content equal bytes.
device_memory zeroed(device& target, std::size_t bytes) {
  static constexpr std::array<std::byte, 1 << 16> zeros{};
  device_memory memory = target.allocate(bytes);
  for (std::size_t at = 0; at < bytes; at += zeros.size()) target.copy(memory.data() + at, zeros.data(), std::min(zeros.size(), bytes - at));
  return memory;
}

}  // namespace

const content_hash& preparer::hash_of(const literal& constant) {
  auto [it, is_new] = hashes_.try_emplace({constant.bytes().data(), constant.bytes().size()});
  if (is_new) it->second = constant.hash();
  return it->second;
}

prepared_kernel preparer::run(const prepare_request& request, const std::function<kernel_handle(const std::string&)>& function) {
  const auto& kernel = request.kernel;
  prepared_kernel result{std::vector<prepared_bytes>(kernel.scratch.size()), constant_launches(request)};
  if (std::ranges::none_of(result.done, std::identity())) return result;

  // One key per prepared buffer, over everything that the launches read.
  std::vector<std::optional<content_hash>> keys(kernel.scratch.size());
  field_hasher common;
  common.add("kiln prepared buffer 1").add(request.payload);
  for (std::size_t l = 0; l < kernel.launches.size(); ++l) {
    if (!result.done[l]) continue;
    common.add(static_cast<std::int64_t>(l));
    for (const launch_argument& a : kernel.launches[l].arguments)
      if (a.kind == buffer_kind::input) common.add(hash_of(*request.constants[a.index]));
  }
  content_hash inputs = common.finish();
  for (std::size_t l = 0; l < kernel.launches.size(); ++l)
    if (result.done[l])
      for (const launch_argument& a : kernel.launches[l].arguments)
        if (a.kind == buffer_kind::scratch && kernel.scratch[a.index].prepared) keys[a.index] = field_hasher().add(inputs).add(static_cast<std::int64_t>(a.index)).finish();

  bool complete = true;
  for (std::size_t b = 0; b < keys.size(); ++b) {
    if (!keys[b]) continue;
    auto bytes = static_cast<std::size_t>(kernel.scratch[b].bytes);
    if (auto it = known_.find(*keys[b]); it != known_.end()) {
      result.scratch[b] = it->second;
    } else if (auto stored = store_ ? store_->find(*keys[b]) : std::nullopt;
               stored && stored->owner && stored->bytes.size() == bytes && reinterpret_cast<std::uintptr_t>(stored->bytes.data()) % arena_alignment == 0) {
      known_[*keys[b]] = result.scratch[b] = *stored;
      bytes_ += bytes;
      ++found_;
    } else {
      complete = false;
    }
  }
  if (complete) return result;

  std::vector<std::shared_ptr<device_memory>> memory(kernel.scratch.size());
  for (std::size_t b = 0; b < memory.size(); ++b) memory[b] = std::make_shared<device_memory>();
  for (std::size_t l = 0; l < kernel.launches.size(); ++l) {
    if (!result.done[l]) continue;
    const launch& what = kernel.launches[l];
    std::vector<void*> buffers;
    for (const launch_argument& a : what.arguments) {
      if (a.kind == buffer_kind::input) {
        buffers.push_back(const_cast<std::byte*>(request.addresses[a.index]));
        continue;
      }
      if (!memory[a.index]->size()) *memory[a.index] = zeroed(device_, static_cast<std::size_t>(kernel.scratch[a.index].bytes));
      buffers.push_back(memory[a.index]->data());
    }
    device_.launch({function(what.symbol), what.grid, what.grid_y, what.grid_z, what.block, what.lds_bytes, buffers});
  }
  device_.synchronize();
  for (std::size_t b = 0; b < keys.size(); ++b) {
    if (!keys[b] || result.scratch[b].owner) continue;
    std::span<const std::byte> bytes{memory[b]->data(), memory[b]->size()};
    known_[*keys[b]] = result.scratch[b] = {bytes, memory[b]};
    bytes_ += bytes.size();
    ++made_;
    if (store_) store_->store(*keys[b], bytes);
  }
  return result;
}

}  // namespace kiln
