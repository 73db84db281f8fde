#include "jit/kernel_compiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "ir/error.hpp"
#include "ir/native_kernel.hpp"
#include "jit/cache/kernel_cache.hpp"
#include "jit/compile_kernel.hpp"
#include "jit/compile_worker.hpp"
#include "jit/deadline.hpp"
#include "jit/finalize_spirv.hpp"
#include "jit/kernel_keys.hpp"
#include "jit/rocm_candidate.hpp"
#include "jit/tuning/tuning_records.hpp"

namespace kiln {
namespace {

// A cached entry is used only if it deserializes as a kernel; anything else is a miss.
native_bytes checked(std::optional<std::vector<std::byte>> bytes) {
  if (!bytes) return nullptr;
  try {
    deserialize_native_kernel(*bytes);
  } catch (const error&) {
    return nullptr;
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(*bytes));
}

native_bytes find_sound(kernel_cache* cache, const kernel_key& key) {
  return cache ? checked(cache->find(key)) : nullptr;
}

}  // namespace

kernel_configuration kernel_compiler::configuration(const kernel_group& g) const {
  if (!options_.configuration.empty()) return options_.configuration;
  kernel_configuration winner;
  if (options_.records) winner = options_.records->winner(g.portable.payload, g.inputs, g.outputs);
  // A choice of HIP counts only for the version that was timed.
  if (auto rocm = chosen_rocm(winner); rocm && rocm != options_.rocm) winner.clear();
  if (!winner.empty() || options_.preferred.empty()) return winner;
  const auto found = options_.preferred.find(group_identity(g.portable.payload, g.inputs, g.outputs));
  return found == options_.preferred.end() ? winner : found->second;
}

kernel_key kernel_compiler::key(const kernel_group& g, const kernel_configuration& configuration) const {
  kernel_key key =
      make_kernel_key(g.portable.payload, g.inputs, g.outputs, configuration, options_.target, g.portable.format);
  key.driver = options_.driver;
  return key;
}

native_bytes kernel_compiler::find(const kernel_group& g, const kernel_configuration& configuration) const {
  kernel_key wanted = key(g, configuration);
  native_bytes found = find_sound(options_.cache, wanted);
  if (found || options_.second_driver.empty()) return found;
  wanted.driver = options_.second_driver;
  return find_sound(options_.cache, wanted);
}

native_bytes kernel_compiler::find_general(const kernel_group& g) const {
  if (!options_.family) return nullptr;
  return find_sound(options_.cache,
                    make_kernel_key(g.portable.payload, g.inputs, g.outputs, {}, *options_.family, g.portable.format));
}

native_bytes kernel_compiler::find_made(const kernel_group& g, const kernel_configuration& configuration) const {
  if (!options_.cache) return nullptr;
  kernel_key wanted = key(g, configuration);
  native_bytes found = checked(options_.cache->find_made(wanted));
  if (found || options_.second_driver.empty()) return found;
  wanted.driver = options_.second_driver;
  return checked(options_.cache->find_made(wanted));
}

work_claim kernel_compiler::claim(const kernel_group& g, const kernel_configuration& configuration, bool wait) const {
  if (!options_.cache) return {};
  const kernel_key wanted = key(g, configuration);
  const auto give_up = std::chrono::steady_clock::now() + options_.kernel_limit;
  auto pause = std::chrono::milliseconds(2);
  work_claim claim = options_.cache->claim(wanted);
  while (wait && claim.busy() && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
    claim = options_.cache->claim(wanted);
  }
  return claim;
}

portable_kernel kernel_compiler::clone(const kernel_group& g) {
  std::shared_ptr<entry> e;
  {
    std::lock_guard lock(mutex_);
    if (!context_) context_.emplace();
    auto& slot = entries_[g.portable.payload];
    if (!slot) slot = std::make_shared<entry>();
    e = slot;
  }
  kernel_key shapes;
  shapes.inputs = g.inputs;
  shapes.outputs = g.outputs;
  std::lock_guard lock(e->mutex);
  auto found = e->specialized.find(shapes.hash());
  if (found == e->specialized.end()) {
    if (!e->parsed)
      e->parsed.emplace(portable_kernel::parse(*context_, source_.kernel(content_hash::from_hex(g.portable.payload))));
    portable_kernel kernel = e->parsed->clone();
    kernel.specialize(g.inputs, g.outputs);
    found = e->specialized.emplace(shapes.hash(), std::move(kernel)).first;
  }
  return found->second.clone();
}

std::optional<native_kernel> kernel_compiler::rocm_form(const kernel_group& g) const {
  return rocm_candidate(source_.kernel(content_hash::from_hex(g.portable.payload)), g.inputs, g.outputs,
                        options_.target);
}

std::vector<std::byte> kernel_compiler::finalize_portable(const kernel_group& g,
                                                          const kernel_configuration& configuration) {
  if (auto rocm = chosen_rocm(configuration); rocm && g.portable.format == code_format::amdgcnspirv) {
    if (rocm != options_.rocm)
      throw error(error_kind::unsupported, fmt::format("its configuration needs HIP {}, which is not installed", rocm));
    auto wrapped = rocm_form(g);
    if (!wrapped) throw error(error_kind::unsupported, "its launches cannot be expressed for HIP's compiler");
    return serialize(*wrapped);
  }
  if (options_.workers)
    return compile_in_worker(*options_.workers,
                             {source_.kernel(content_hash::from_hex(g.portable.payload)), g.inputs, g.outputs,
                              options_.target, configuration},
                             {.time = options_.kernel_limit});
  if (g.portable.format == code_format::amdgcnspirv) {
    auto payload = source_.kernel(content_hash::from_hex(g.portable.payload));
    return call_with_deadline(
        options_.kernel_limit, "compiling",
        [payload = std::vector(payload.begin(), payload.end()), inputs = g.inputs, outputs = g.outputs,
         target = options_.target] { return serialize(finalize_spirv(payload, inputs, outputs, target)); });
  }
  // The call owns the clone and everything else that it touches, so that it can be abandoned at the deadline.
  auto kernel = std::make_shared<portable_kernel>(clone(g));
  return call_with_deadline(options_.kernel_limit, "compiling", [kernel, target = options_.target, configuration] {
    return compile_specialized(std::move(*kernel), target, configuration);
  });
}

std::vector<kernel_configuration> kernel_compiler::candidates(const kernel_group& g, tuning_effort effort) {
  if (!options_.workers) return candidate_configurations(clone(g), options_.target, effort);
  // One request for all candidates (64 or more), each of which is generated once. The time limit covers all of them.
  return candidates_in_worker(
      *options_.workers,
      {source_.kernel(content_hash::from_hex(g.portable.payload)), g.inputs, g.outputs, options_.target}, effort);
}

native_bytes kernel_compiler::compile(const kernel_group& g, const kernel_configuration& configuration) {
  // The kernel before the driver has compiled it. It may be cached by this machine, or by one without such a device.
  const kernel_key usual = key(g, configuration);
  kernel_key before_driver = usual;
  before_driver.driver.clear();
  try {
    auto known = options_.assemble ? find_sound(options_.cache, before_driver) : nullptr;
    auto bytes = known ? *known : finalize_portable(g, configuration);
    if (options_.assemble) {
      native_kernel native = deserialize_native_kernel(bytes);
      assembled_object made = options_.assemble(native.object);
      native.object = std::move(made.bytes);
      bytes = serialize(native);
      std::lock_guard lock(mutex_);
      if (made.by == options_.driver) assembled_by_.erase(usual.hash());
      else assembled_by_[usual.hash()] = std::move(made.by);
    }
    return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  } catch (const error& e) {
    throw error(e.kind(),
                fmt::format("kernel '{}' ({}): {}", g.portable.symbol, g.portable.payload.substr(0, 16), e.what()));
  }
}

void kernel_compiler::keep(const kernel_group& g, const kernel_configuration& configuration, const native_bytes& native,
                           work_claim claim) const {
  if (!options_.cache) return;
  kernel_key made = key(g, configuration);
  {
    std::lock_guard lock(mutex_);
    if (auto other = assembled_by_.find(made.hash()); other != assembled_by_.end()) made.driver = other->second;
  }
  if (made.driver.empty() && !options_.driver.empty()) return;  // the next process asks the usual one again
  if (options_.store_later) options_.cache->store_later(std::move(made), native, std::move(claim));
  else options_.cache->store(made, *native);
}

}  // namespace kiln
