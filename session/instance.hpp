// A model at one set of sizes: its kernels finalized for the session's device, loaded and planned. Made by
// session::at(); it must not outlive its session. run() may be called from any thread, and its calls follow one
// another; everything else that changes an instance is for one thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "jit/tuning/tiered_model.hpp"
#include "runtime/executable.hpp"
#include "session/graph_memory.hpp"
#include "session/resources.hpp"

namespace kiln {

class row_kernels;

class instance {
 public:
  // Finalizes what is missing, loads and plans. `bound` has the sizes in place of its symbols. Throws what
  // compile_bytecode and load throw. `rows`, which may be null, replaces the kernels that it has; the report of
  // finalizing these is a part of this instance's.
  instance(const session_resources& with, program bound, dim_bindings sizes, const row_kernels* rows = nullptr,
           jit_report of_rows = {});
  ~instance();
  instance(const instance&) = delete;

  const dim_bindings& sizes() const { return sizes_; }
  const program& bound() const { return bound_; }       // portable kernels, static shapes
  const program& native() const { return native_; }     // what the executable was loaded from
  const jit_report& report() const { return report_; }  // of finalization
  const kiln::executable& executable() const { return *executable_; }
  const graph_memory& graphs() const { return graphs_; }  // the policy, and what is known about this program
  double finalize_ms() const { return finalize_ms_; }
  double load_ms() const { return load_ms_; }

  // Goes on with an executable of the same program with other kernels.
  void adopt(kiln::executable better);

  // One run with tensors of the host, in the order of the plan's inputs and outputs. Memory of the device and graphs
  // stay for the next run; with session_options::tuning the first run starts the tuner, and later runs take what it
  // finds. Throws error{usage} naming an input that does not fit.
  std::vector<literal> run(std::span<const literal> inputs);
  // Tunes in this thread, with all processors. For use when no model runs at the same time. What is found is kept in
  // the session's records and cache. `inputs` in the order of the plan's.
  std::vector<kernel_tuning> tune(std::span<const literal> inputs, const tuner_options& options,
                                  double budget_ms) const;
  // A model that runs as this instance does and, once started, tunes in the background with the session's effort and
  // budget. It refers to this instance.
  std::unique_ptr<tiered_model> tuned_in_background(std::vector<literal> inputs) const;
  // Waits for the end of tuning in the background, if it runs, without cancelling it.
  void finish_tuning();
  tiered_progress tuning() const;

 private:
  struct runner;
  program finalize(const row_kernels* rows);
  const session_resources& with_;
  dim_bindings sizes_;
  program bound_, native_;
  jit_report report_;
  double finalize_ms_ = 0, load_ms_ = 0;
  std::optional<kiln::executable> executable_;
  graph_memory graphs_;
  mutable std::mutex run_mutex_;
  std::unique_ptr<runner> runner_;  // made by the first run
};

}  // namespace kiln
