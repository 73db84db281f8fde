// A model at one set of sizes: its kernels finalized for the session's device, loaded and planned. Made by
// session::at(); it must not outlive its session. run() may be called from any thread, and its calls follow one
// another; everything else that changes an instance is for one thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "jit/tuning/background_tuner.hpp"
#include "runtime/executable.hpp"
#include "runtime/model_runner.hpp"
#include "session/graph_memory.hpp"
#include "session/lazy_state.hpp"
#include "session/resources.hpp"

namespace kiln {

class ranged_kernels;

// Adds what was finalized besides.
void add_report(jit_report& to, jit_report other);

// Which kernels an instance is made with.
struct instance_kernels {
  // If not null: kernels that serve many sizes, which are used where there is one.
  const ranged_kernels* ranged = nullptr;
  // The report of finalizing these. It becomes a part of the instance's.
  jit_report of_ranged = {};
  // Throw error{not_cached} instead of compiling, whatever the session's options are.
  bool only_cached = false;
};

class instance {
 public:
  // Finalizes missing kernels, loads the program and plans it. `bound` is the program with its symbols replaced by the
  // sizes. Throws what compile_bytecode and load throw.
  instance(const session_resources& with, program bound, dim_bindings sizes, instance_kernels kernels = {});
  // For kernels that serve all sizes: goes on from a plan of a template. `portable` must outlive the instance.
  // `graphs` is what is known about replaying the plans of the template, `report` that of finalizing its kernels if
  // this is the first instance.
  instance(const session_resources& with, const program& portable, dim_bindings sizes,
           std::shared_ptr<const plan> planned, graph_memory graphs, jit_report report = {});
  ~instance();
  instance(const instance&) = delete;

  const dim_bindings& sizes() const { return sizes_; }
  const program& bound() const;                         // portable kernels, static shapes
  const jit_report& report() const { return report_; }  // of finalization
  const kiln::executable& executable() const { return *executable_; }
  // Returns true if some kernels were loaded for this instance alone.
  bool has_own_kernels() const { return native_ || lazy_.choice() != kernel_choice::none_yet; }
  const graph_memory& graphs() const { return graphs_; }  // the policy, and what is known about this program
  double finalize_ms() const { return finalize_ms_; }
  double load_ms() const { return load_ms_; }

  // Goes on with an executable of the same program with other kernels.
  void adopt(kiln::executable better);

  // For specialization::lazy. If it is watched, runs are made by lazy_runner.
  lazy_state& lazy() const { return lazy_; }
  // Compiles kernels for exactly these sizes in this thread and puts them on trial. `cancelled` is asked after each
  // kernel. Throws what the constructor throws, and work_cancelled.
  void specialize(const std::function<bool()>& cancelled);

  // One run with tensors of the host, in the order of the plan's inputs and outputs. Memory of the device and graphs
  // stay for the next run; with session_options::tuning the first run starts the tuner, and later runs take what it
  // finds. Throws error{usage} naming an input that does not fit.
  std::vector<literal> run(std::span<const literal> inputs);
  // Tunes in this thread, with all processors. For use when no model runs at the same time. What is found is kept in
  // the session's records and cache. `inputs` in the order of the plan's.
  std::vector<kernel_tuning> tune(std::span<const literal> inputs, const tuner_options& options,
                                  double budget_ms) const;
  // Returns another runner of this model, for the thread of another caller or for tensors in device memory. With
  // session_options::tuning its first run starts the tuner, and later runs use the tuner's results. It must not outlive
  // this instance.
  std::unique_ptr<model_runner> make_runner(graph_policy policy) const;
  // Returns the background tuner for all runners of this instance. It has the session's effort and budget.
  background_tuner& tuning_in_background() const;
  // Waits for the end of tuning in the background, if it runs, without cancelling it.
  void finish_tuning() const;
  tuning_progress tuning() const;
  // The error that ended tuning; "" if there is none.
  std::string tuning_problem() const;

 private:
  struct runner;
  program finalize(const instance_kernels& kernels);
  const session_resources& with_;
  dim_bindings sizes_;
  const program* portable_ = nullptr;  // of which bound_ is made on demand
  mutable std::once_flag bound_once_;
  mutable std::optional<program> bound_;
  std::optional<program> native_;  // what the executable was loaded from; not if that was a template
  jit_report report_;
  double finalize_ms_ = 0, load_ms_ = 0;
  std::optional<kiln::executable> executable_;
  graph_memory graphs_;
  mutable lazy_state lazy_;
  std::mutex run_mutex_;
  // Guards the creation of tuner_.
  mutable std::mutex tuner_mutex_;
  // Created on first use.
  mutable std::unique_ptr<background_tuner> tuner_;
  // Created by the first run.
  std::unique_ptr<runner> runner_;
  std::unique_ptr<model_runner> shared_runner_;  // where runs share memory with those of other instances
};

}  // namespace kiln
