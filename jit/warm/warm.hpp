// Fills a kernel cache ahead of time, for many programs and targets at once. Each kernel is compiled once, on one
// bounded thread pool. No device is needed.
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
  std::size_t target;  // index in warm_plan::targets()
  std::shared_ptr<const std::vector<std::byte>> payload;
  std::vector<std::size_t> sources;  // the sources that need it, as passed to add(), without duplicates
};

// The kernels to compile, from programs and logs, without duplicates. A plan keeps only the kernels' bytes, not the
// programs. Used by one thread at a time.
class warm_plan {
 public:
  // Only the members target, driver and assemble of `target` are used. Returns the index of the target.
  std::size_t add_target(jit_options target);
  // Adds every kernel of `bound` (static shapes) for the target. `source` is the caller's number for the program.
  // Throws what wanted_kernels throws, and error{corrupted} if a payload is missing.
  void add(const program& bound, std::size_t target, std::size_t source);
  // Adds a recorded kernel whose bytes are `payload`. Returns false if this version computes a different key, because
  // the recording machine would not find the entry.
  bool add(const recorded_miss& miss, std::shared_ptr<const std::vector<std::byte>> payload, std::size_t source);

  const std::vector<warm_kernel>& kernels() const { return kernels_; }
  const std::vector<jit_options>& targets() const { return targets_; }
  // How many kernels were added that the plan already had.
  std::size_t duplicates() const { return duplicates_; }

 private:
  void add(warm_kernel kernel, std::size_t source);
  std::vector<jit_options> targets_;
  std::vector<warm_kernel> kernels_;
  std::map<content_hash, std::size_t> known_;
  std::size_t duplicates_ = 0;
};

enum class warm_state { left, present, compiled, failed };  // left: not started because of a request to stop
template <>
struct enum_table<warm_state> {
  static constexpr std::array<std::string_view, 4> names{"left", "present", "compiled", "failed"};
};

struct warm_result {
  warm_state state = warm_state::left;
  double ms = 0;
  error_kind why{};  // if failed
  std::string message;
};

// Compiles the kernels that `options.cache` lacks, with the threads, limits and workers of `options`.
// `options.progress` is called after every kernel. The results are in the order of the plan's kernels. A failed kernel
// does not stop the others. After a request to stop no kernel is started; kernels in progress are finished and kept.
std::vector<warm_result> warm(const warm_plan& plan, const jit_options& options, std::stop_token stop = {});

}  // namespace kiln
