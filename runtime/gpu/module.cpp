#include "runtime/gpu/module.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>

#include "runtime/gpu/objects.hpp"

namespace kiln::gpu {
namespace {

// CUjit_option, CUjitInputType and CUjit_target from cuda.h.
constexpr int error_log = 5, error_log_bytes = 6, compile_target = 9;
constexpr int input_ptx = 1;
constexpr std::uintptr_t accelerated_target = 0x10000;
// Dynamic shared memory that a function may use without raising its limit.
constexpr std::int64_t shared_bytes_without_asking = 48 << 10;

// Options that make the driver's compiler write an error log.
class error_log_options {
 public:
  explicit error_log_options(std::uintptr_t target = 0)
      : count_(target ? 3 : 2),
        values_{text_.data(), reinterpret_cast<void*>(text_.size()), reinterpret_cast<void*>(target)} {}
  unsigned count() const { return count_; }
  int* names() { return names_.data(); }
  void** values() { return values_.data(); }
  std::string text() const {
    std::string text(text_.data());
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }

 private:
  std::array<char, 8192> text_{};
  unsigned count_;
  std::array<int, 3> names_{error_log, error_log_bytes, compile_target};
  std::array<void*, 3> values_;
};

struct link_result {
  int status = status_ok;
  std::string log;
  std::vector<std::byte> cubin;
};

link_result link(const driver_functions& f, std::vector<std::byte>& ptx, std::uintptr_t target) {
  error_log_options options(target);
  void* linking = nullptr;
  link_result result;
  result.status = f.link_create(options.count(), options.names(), options.values(), &linking);
  if (result.status) return result;
  result.status = f.link_add(linking, input_ptx, ptx.data(), ptx.size(), "kernel.ptx", 0, nullptr, nullptr);
  void* cubin = nullptr;
  std::size_t bytes = 0;
  if (!result.status) result.status = f.link_complete(linking, &cubin, &bytes);
  if (!result.status) result.cubin.assign(static_cast<std::byte*>(cubin), static_cast<std::byte*>(cubin) + bytes);
  result.log = options.text();
  int destroyed = f.link_destroy(linking);
  if (!result.status) result.status = destroyed;
  return result;
}

}  // namespace

module::module(state& of, std::span<const std::byte> object) :state_(of) {
  const driver_functions& f = of.functions();
  std::vector<std::byte> text;
  if (is_elf(object)) check_elf(object);
  else if (f.hip_module_load && is_bundle(object)) check_bundle(object);  // HIP compiles the bundle
  else object = text = as_text(object);
  if (f.hip_module_load) {
    of.require(f.hip_module_load(&native_, object.data()), "loading a kernel");
    return;
  }
  error_log_options options;
  int status = f.cuda_module_load(&native_, object.data(), options.count(), options.names(), options.values());
  of.require(status, "loading a kernel", options.text());
}

module::~module() {
  if (state_.hung()) return;
  current_device now(state_);
  state_.note(state_.functions().module_unload(native_));
}

const function& module::find(std::string_view symbol, std::int64_t lds_bytes) {
  working_device now(state_);
  std::lock_guard lock(mutex_);
  const driver_functions& f = state_.functions();
  auto it = functions_.find(symbol);
  if (it == functions_.end()) {
    function what{nullptr, std::string(symbol)};
    state_.require(f.module_function(&what.native, native_, what.name.c_str()),
                   "function '" + what.name + "' of a kernel");
    it = functions_.emplace(what.name, found{what, shared_bytes_without_asking}).first;
  }
  // AMD devices have no such limit: a workgroup may use all LDS.
  if (lds_bytes > it->second.lds_bytes && f.function_set_attribute) {
    state_.require(f.function_set_attribute(it->second.what.native, function_dynamic_shared_bytes,
                                            static_cast<int>(std::min<std::int64_t>(lds_bytes, INT_MAX))),
                   std::to_string(lds_bytes) + " bytes of shared memory for kernel '" + it->second.what.name + "'");
    it->second.lds_bytes = lds_bytes;
  }
  return it->second.what;
}

std::shared_ptr<module> module_table::load(std::span<const std::byte> object) {
  content_hash key = blake3(object);
  {
    std::lock_guard lock(mutex_);
    if (auto it = modules_.find(key); it != modules_.end())
      if (auto held = it->second.lock()) return held;
  }
  auto made = std::make_shared<module>(state_, object);
  std::lock_guard lock(mutex_);
  std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = modules_[key];
  if (auto first = entry.lock()) return first;
  entry = made;
  return made;
}

library::library(module_table& table, std::span<const native_kernel* const> kernels) {
  for (const native_kernel* kernel : kernels) {
    entry& e = entries_.emplace_back(entry{table.load(kernel->object), {}});
    for (const launch& l : kernel->launches) {
      std::int64_t& most = e.lds_bytes[l.symbol];
      most = std::max(most, l.lds_bytes);
    }
  }
}

kernel_handle library::find(std::size_t index, std::string_view symbol) const {
  if (index >= entries_.size())
    throw error(error_kind::corrupted, "function '" + std::string(symbol) + "': no such kernel was loaded");
  const entry& e = entries_[index];
  auto asked = e.lds_bytes.find(symbol);
  return {&e.code->find(symbol, asked == e.lds_bytes.end() ? 0 : asked->second)};
}

std::vector<std::byte> to_machine_code(state& of, std::span<const std::byte> object) {
  const driver_functions& f = of.functions();
  if (!f.link_create || is_elf(object)) return {object.begin(), object.end()};
  std::vector<std::byte> ptx = as_text(object);
  working_device now(of);
  link_result made = link(f, ptx, 0);
  // Some drivers compile for the plain architecture unless the target features of the text ("sm_90a") are requested.
  std::string_view target = ptx_target(ptx);
  if (made.status && !of.lost() && target.starts_with("sm_") && target.ends_with('a')) {
    auto number = static_cast<std::uintptr_t>(std::atoi(std::string(target.substr(3)).c_str()));
    link_result again = link(f, ptx, accelerated_target + number);
    if (!again.status) made = std::move(again);
  }
  of.require(made.status, "compiling a kernel", made.log);
  return std::move(made.cubin);
}

}  // namespace kiln::gpu
