// Fills a kernel cache ahead of time: for many programs and targets at once, each kernel once, on one bounded pool.
// Nothing of it needs a device.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "ir/error.hpp"
#include "ir/program.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/warm/recorded_miss.hpp"

namespace kiln {

// One kernel for one target.
struct warm_kernel {
  std::string symbol;
  kernel_key key;
  std::size_t target;  // of warm_plan::targets
  std::shared_ptr<const std::vector<std::byte>> payload;
  std::vector<std::size_t> sources;  // who wants it: the numbers given to add(), each once
};

// What is to be compiled: kernels of programs and of logs, equal ones once. A plan keeps the kernels' bytes and nothing
// else of the programs. One thread at a time.
class warm_plan {
 public:
  // `target` holds target, driver and assemble; the rest of it does not count. Returns the target's number.
  std::size_t add_target(jit_options target);
  // Every kernel of `bound` (static shapes) for the target, on behalf of `source`. Throws what wanted_kernels throws.
  void add(const program& bound, std::size_t target, std::size_t source);
  // A recorded kernel, whose bytes are `payload`. False where this version makes another key of it: it would not be
  // found there.
  bool add(const recorded_miss& miss, std::shared_ptr<const std::vector<std::byte>> payload, std::size_t source);

  const std::vector<warm_kernel>& kernels() const { return kernels_; }
  const std::vector<jit_options>& targets() const { return targets_; }
  std::size_t duplicates() const {
    return duplicates_;
  }  // kernels that were there already when somebody else wanted them

 private:
  void add(warm_kernel kernel, std::size_t source);
  std::vector<jit_options> targets_;
  std::vector<warm_kernel> kernels_;
  std::map<content_hash, std::size_t> known_;
  std::size_t duplicates_ = 0;
};

enum class warm_state { left, present, compiled, failed };  // left: not begun, since somebody asked to stop
template <>
struct enum_table<warm_state> {
  static constexpr std::array<std::string_view, 4> names{"left", "present", "compiled", "failed"};
};

struct warm_result {
  warm_state state = warm_state::left;
  double ms = 0;
  error_kind why{};  // of a failure
  std::string message;
};

// Compiles what `options.cache` lacks, with the options' threads, limits and worker; `options.progress` hears of every
// kernel. The results are in the order of the plan's kernels. A kernel that fails stops no other one. After `stop` no
// kernel is begun; those in work are finished and kept.
std::vector<warm_result> warm(const warm_plan& plan, const jit_options& options, std::stop_token stop = {});

}  // namespace kiln
