// Decisions of `--graph auto` about a loaded program: this process takes them out of the tuning records, and stores new
// ones there for later processes.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ir/program.hpp"
#include "jit/tuning/tuning_records.hpp"
#include "runtime/executable.hpp"

namespace kiln {

class graph_memory {
 public:
  graph_memory() = default;
  // `native` is what was loaded on `target`; `records` outlives this. `again`: what is known is measured again.
  graph_memory(const tuning_records& records, const device& target, const program& native, graph_policy policy,
               bool again = false);

  // For contexts. `on` uses of a decision which order of independent steps is the faster, where that was graphs' way.
  graph_options options() const;
  // Keeps what a context made with options() has found out under `automatic`, if anything. If replay was faster, the
  // copies of this object, which serve other sizes of the model, use it without measuring. If launches were faster,
  // each copy measures for its own sizes.
  void keep(const execution_context& context) const;
  // Whether the decision was known before this process measured anything.
  bool remembered() const { return remembered_.has_value(); }
  // The next executable has other kernels: nothing is known about them, nor kept.
  void forget();

 private:
  const tuning_records* records_ = nullptr;  // null: nothing is kept
  std::string program_;
  graph_policy policy_ = graph_policy::automatic;
  std::optional<graph_decision> remembered_;
  struct found_out {
    std::mutex mutex;
    std::optional<graph_decision> decision;
  };
  std::shared_ptr<found_out> shared_;  // with copies
};

}  // namespace kiln
