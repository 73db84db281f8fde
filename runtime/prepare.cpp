#include "runtime/prepare.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "ir/mapped_pages.hpp"
#include "ir/shared_layout.hpp"
#include "runtime/arena.hpp"
#include "runtime/code_identity.hpp"

namespace kiln {
namespace {

// The launches that can run now: `prepare` launches that read only constants and share scratch memory only with other
// such launches.
std::vector<bool> constant_launches(const prepare_request& request) {
  const auto& launches = request.kernel.launches;
  std::vector<bool> constant(launches.size());
  std::vector<bool> varies(request.kernel.scratch.size());  // scratch that each run must fill
  for (std::size_t l = 0; l < launches.size(); ++l)
    constant[l] = launches[l].prepare && !launches[l].open_grid &&
                  std::ranges::all_of(launches[l].arguments, [&](const launch_argument& a) {
                    return (a.kind == buffer_kind::scratch && !request.kernel.scratch[a.index].open_bytes) ||
                           (a.kind == buffer_kind::input && request.constants[a.index] != nullptr);
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

// The ELF machine number of a host kernel's object.
unsigned machine_of(std::span<const std::byte> object) {
  Elf64_Half machine = 0;
  if (object.size() >= sizeof(Elf64_Ehdr))
    std::memcpy(&machine, object.data() + offsetof(Elf64_Ehdr, e_machine), sizeof machine);
  return machine;
}

// For each prepared buffer, the launches that contribute to it: those that share scratch with it, directly or through
// other buffers.
std::vector<std::vector<std::size_t>> makers(const native_kernel& kernel, const std::vector<bool>& done) {
  std::vector<std::size_t> part(kernel.scratch.size());  // equal for buffers that share a launch
  for (std::size_t b = 0; b < part.size(); ++b) part[b] = b;
  auto scratch_of = [&](std::size_t l) {
    std::vector<std::size_t> buffers;
    for (const launch_argument& a : kernel.launches[l].arguments)
      if (a.kind == buffer_kind::scratch) buffers.push_back(a.index);
    return buffers;
  };
  for (std::size_t l = 0; l < done.size(); ++l)
    if (auto buffers = done[l] ? scratch_of(l) : std::vector<std::size_t>(); !buffers.empty())
      for (std::size_t b : buffers) std::ranges::replace(part, std::size_t{part[b]}, std::size_t{part[buffers[0]]});
  std::vector<std::vector<std::size_t>> result(kernel.scratch.size());
  for (std::size_t l = 0; l < done.size(); ++l)
    if (auto buffers = done[l] ? scratch_of(l) : std::vector<std::size_t>(); !buffers.empty())
      for (std::size_t b = 0; b < part.size(); ++b)
        if (part[b] == part[buffers[0]]) result[b].push_back(l);
  return result;
}

// A key for a buffer whose only launch says what it makes of its only input (shared_layout.hpp), or none.
std::optional<content_hash> key_of_layout(const prepare_request& request, std::size_t buffer,
                                          const std::vector<std::size_t>& launches) {
  if (launches.size() != 1) return std::nullopt;
  const launch& what = request.kernel.launches[launches[0]];
  const std::string_view layout = shared_layout_of(what.symbol);
  if (layout.empty() || what.arguments.size() != 2) return std::nullopt;
  const auto input = std::ranges::find(what.arguments, buffer_kind::input, &launch_argument::kind);
  if (input == what.arguments.end()) return std::nullopt;
  field_hasher key;
  key.add("kiln prepared layout 1").add(layout).add(request.kernel.scratch[buffer].bytes);
  return key.add(request.hash(input->index)).finish();
}

// A key for each prepared buffer that the launches of `done` write. It covers the constants that those launches read
// and what they compute. On the host that is their machine code, if it can be separated from the rest of the kernel;
// otherwise it is the kernel's hash and the launches' numbers. The rest of the kernel is not covered, so kernels for
// other batch sizes, models or configurations share the buffer if they pack the same way. On GPUs, where the
// code of a launch cannot be separated, a launch may say what it makes instead.
std::vector<std::optional<content_hash>> buffer_keys(const prepare_request& request, const std::vector<bool>& done,
                                                     bool host) {
  const native_kernel& kernel = request.kernel;
  std::optional<elf_object> object;
  if (host) object.emplace(kernel.object, machine_of(kernel.object));
  std::vector<std::optional<content_hash>> keys(kernel.scratch.size());
  const auto launches_of = makers(kernel, done);
  for (std::size_t b = 0; b < keys.size(); ++b) {
    if (!kernel.scratch[b].prepared || launches_of[b].empty()) continue;
    if (!host && (keys[b] = key_of_layout(request, b, launches_of[b]))) continue;
    field_hasher key;
    key.add("kiln prepared buffer 2").add(static_cast<std::int64_t>(object ? machine_of(kernel.object) : 0));
    // Buffers are numbered in order of first use; the buffer that the key is for comes first.
    std::vector<std::size_t> numbers{b};
    for (std::size_t l : launches_of[b]) {
      const launch& what = kernel.launches[l];
      const auto code = object ? code_identity(*object, what.symbol) : std::nullopt;
      if (code) key.add("code").add(*code);
      else key.add("launch").add(request.payload).add(static_cast<std::int64_t>(l));
      for (std::int64_t number : {what.grid, what.grid_y, what.grid_z, what.block, what.lds_bytes}) key.add(number);
      key.add(static_cast<std::int64_t>(what.arguments.size()));
      for (const launch_argument& a : what.arguments) {
        if (a.kind == buffer_kind::input) {
          key.add("constant").add(request.hash(a.index));
          continue;
        }
        auto known = std::ranges::find(numbers, a.index);
        key.add("scratch").add(static_cast<std::int64_t>(known - numbers.begin())).add(kernel.scratch[a.index].bytes);
        if (known == numbers.end()) numbers.push_back(a.index);
      }
    }
    keys[b] = key.finish();
  }
  return keys;
}

// Packed buffers have padding that no launch writes. Zeros there make equal contents equal bytes.
device_memory zeroed(device& target, std::size_t bytes) {
  device_memory memory = target.allocate(bytes);
  target.fill_zero(memory.data(), bytes);
  return memory;
}

}  // namespace

std::optional<prepared_bytes> preparer::find(const content_hash& key, std::size_t bytes) {
  if (auto it = known_.find(key); it != known_.end()) return it->second;
  prepared_bytes result;
  if (auto memory = device_.shared().find(key)) {
    result = {{memory->data(), memory->size()}, memory};
  } else if (auto stored = store_ ? store_->find(key) : std::nullopt;
             stored && reinterpret_cast<std::uintptr_t>(stored->bytes.data()) % arena_alignment == 0) {
    result = *stored;
  }
  if (!result.owner || result.bytes.size() != bytes) return std::nullopt;
  bytes_ += bytes;
  ++found_;
  return known_[key] = result;
}

prepared_bytes preparer::keep(const content_hash& key, std::shared_ptr<const device_memory> memory) {
  memory = device_.shared().add(key, memory);
  prepared_bytes result{{memory->data(), memory->size()}, memory};
  known_[key] = result;
  bytes_ += result.bytes.size();
  ++made_;
  if (store_) store_->store(key, result);
  return result;
}

namespace {

// Removes the launches from `done` that prepare only what nobody needs (prepare_request::needed). Returns the scratch
// buffers that they would prepare.
std::vector<bool> put_off(const prepare_request& request, std::vector<bool>& done) {
  const native_kernel& kernel = request.kernel;
  std::vector<bool> later(kernel.scratch.size());
  if (!request.needed) return later;
  std::vector<bool> read(kernel.scratch.size());
  for (std::size_t l = 0; l < done.size(); ++l)
    if (!done[l] && request.needed(l))
      for (const launch_argument& a : kernel.launches[l].arguments)
        if (a.kind == buffer_kind::scratch) read[a.index] = true;
  const auto launches_of = makers(kernel, done);
  std::vector<bool> used(done.size());
  for (std::size_t b = 0; b < read.size(); ++b)
    if (read[b])
      for (std::size_t l : launches_of[b]) used[l] = true;
  for (std::size_t b = 0; b < read.size(); ++b)
    later[b] = kernel.scratch[b].prepared && !launches_of[b].empty() && !used[launches_of[b].front()];
  for (std::size_t l = 0; l < done.size(); ++l) done[l] = done[l] && used[l];
  return later;
}

// Runs read what was packed, not these constants. Those that other kernels read, too, come back page by page.
void let_go_of_packed(const prepare_request& request, const std::vector<bool>& done) {
  for (std::size_t l = 0; l < done.size(); ++l) {
    if (!done[l]) continue;
    for (const launch_argument& a : request.kernel.launches[l].arguments)
      if (a.kind == buffer_kind::input)
        let_go_of_pages({request.constants[a.index]->address(), request.constants[a.index]->byte_count()});
  }
}

}  // namespace

prepared_kernel preparer::run(const prepare_request& request) {
  const auto& kernel = request.kernel;
  prepared_kernel result{std::vector<prepared_bytes>(kernel.scratch.size()), constant_launches(request),
                         std::vector<bool>(kernel.scratch.size())};
  if (std::ranges::none_of(result.done, std::identity())) return result;

  const bool host = device_.info().host_memory;
  std::vector<bool> now = result.done;  // per launch
  result.later = put_off(request, now);
  const std::vector<std::optional<content_hash>> keys = buffer_keys(request, now, host);
  bool complete = true;
  for (std::size_t b = 0; b < keys.size(); ++b) {
    if (!keys[b]) continue;
    if (auto found = find(*keys[b], static_cast<std::size_t>(kernel.scratch[b].bytes))) result.scratch[b] = *found;
    else complete = false;
  }
  if (complete) {
    if (host) let_go_of_packed(request, now);
    return result;
  }

  std::vector<std::shared_ptr<device_memory>> memory(kernel.scratch.size());
  for (std::size_t b = 0; b < memory.size(); ++b) memory[b] = std::make_shared<device_memory>();
  for (std::size_t l = 0; l < kernel.launches.size(); ++l) {
    if (!now[l]) continue;
    const launch& what = kernel.launches[l];
    std::vector<void*> buffers;
    for (const launch_argument& a : what.arguments) {
      if (a.kind == buffer_kind::input) {
        buffers.push_back(const_cast<std::byte*>(request.address(a.index)));
        continue;
      }
      if (!memory[a.index]->size())
        *memory[a.index] = zeroed(device_, static_cast<std::size_t>(kernel.scratch[a.index].bytes));
      buffers.push_back(memory[a.index]->data());
    }
    // The format for GPUs: addresses of the arguments' values, some of which are tensor maps.
    std::vector<encoded_tensor_map> maps(what.tensor_maps.size());
    std::vector<void*> parameters;
    if (!device_.info().host_memory)
      for (void*& buffer : buffers) parameters.push_back(&buffer);
    for (std::size_t m = 0; m < maps.size(); ++m) {
      device_.encode(what.tensor_maps[m], buffers[what.tensor_maps[m].argument], &maps[m]);
      parameters[what.tensor_maps[m].argument] = &maps[m];
    }
    device_.launch({request.function(what.symbol), what.grid, what.grid_y, what.grid_z, what.block, what.lds_bytes,
                    buffers, parameters});
  }
  device_.check(nullptr);  // the results are used in the order of the device's own stream
  for (std::size_t b = 0; b < keys.size(); ++b) {
    if (!keys[b] || result.scratch[b].owner) continue;
    result.scratch[b] = keep(*keys[b], memory[b]);
  }
  if (host) let_go_of_packed(request, now);
  return result;
}

}  // namespace kiln
