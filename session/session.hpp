// A model opened for use: what the command line and every binding call. A session reads a `.kiln` file (or takes a
// program), chooses a device and opens the cache; for each set of sizes that it is asked for it finalizes the kernels
// that are missing, loads them and plans, and keeps the result as an instance. Instances share the mapped file, the
// device with its constants and packed weights, the workers and the cache.
//
// Any thread may call any function. Errors are thrown as kiln::error; what becomes of the work is told to the
// observer of the options.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/size_resolver.hpp"
#include "runtime/open_plans.hpp"
#include "runtime/verify_ahead.hpp"
#include "session/background_work.hpp"
#include "session/instance.hpp"
#include "session/ranged_kernels.hpp"
#include "session/size_series.hpp"

namespace kiln {

class session {
 public:
  // Opens a `.kiln` file, or whatever else options.import reads. Throws what read_program, choose_device and
  // kernel_cache::open throw, and error{unsupported} for an .onnx without an importer.
  session(const std::filesystem::path& file, session_options options);
  // The same for callers who have read the file's program already, with consent_of(options.cache).
  session(program portable, const std::filesystem::path& file, session_options options);
  // Takes a program of this process. `name` is for logs.
  session(program portable, std::string name, session_options options);

  const program& portable() const { return portable_; }
  const session_resources& resources() const { return *resources_; }
  double read_ms() const { return read_ms_; }  // the file: program, embedded entries, hints

  // The instance for these values of the open dimensions, made where there is none yet. At most most_instances are
  // kept, and fewer if the graphs of the device take too much memory (runtime/graph/graph_usage.hpp); one that somebody
  // holds lives on without being kept. Throws error{usage} that names a dimension without a
  // value, or error{invalid_shape} for one outside its range or against a condition of the model.
  std::shared_ptr<instance> at(const dim_bindings& sizes);
  // The same for callers who have bound the program already: `bound` is portable().bind(sizes).
  std::shared_ptr<instance> at(const dim_bindings& sizes, program bound);
  // Adds the sizes that data decide (ir/size_stages.hpp) to `sizes`, which has a value for all others: computes them
  // from the inputs. Does nothing for a model without such sizes.
  void add_data_sizes(dim_bindings& sizes, const std::map<std::string, literal>& inputs);
  // For these inputs, in the order of the main module's parameters. Throws error{invalid_shape} that names an input
  // which contradicts the model.
  std::shared_ptr<instance> at(std::span<const literal> inputs);
  // Runs the instance for these inputs. Outputs in the order of the model's.
  std::vector<literal> run(std::span<const literal> inputs) { return at(inputs)->run(inputs); }

  // One plan for `sizes` and for later ones that are not larger than `room`, which grows with them (a decoder's steps).
  // Its kernels serve all sizes, except those that have only dims of `exact`: these are compiled for the values there,
  // which all sizes must have. With `ready` they are not compiled now: if the cache lacks them, they are compiled in
  // the background for later sessions. Returns null then, and if some kernel serves one set of sizes only: use at().
  enum class exact_kernels : std::uint8_t { compiled, ready };
  std::unique_ptr<size_series> series(const dim_bindings& sizes, const dim_bindings& room,
                                      const dim_bindings& exact = {}, exact_kernels which = exact_kernels::compiled);

  std::size_t instances() const;  // that are kept
  // Returns true if nothing is compiled in the background (specialization::lazy).
  bool idle() const { return background_.idle(); }

 private:
  void open(const std::filesystem::path& file, session_options options);
  void find_native_kernels();
  void find_data_sizes(std::optional<std::filesystem::path> file);
  std::shared_ptr<instance> find(const dim_bindings& sizes);
  std::shared_ptr<instance> first_to_drop();
  void retire(std::shared_ptr<instance> dropped);
  std::shared_ptr<instance> make(const dim_bindings& sizes, const std::function<program()>& bind);
  std::shared_ptr<instance> make_from_program(program bound, const dim_bindings& sizes);
  std::shared_ptr<instance> make_exact(program bound, const dim_bindings& sizes, bool only_cached = false);
  std::shared_ptr<instance> make_general(program bound, const dim_bindings& sizes, bool only_cached = false);
  // With kernels that serve all sizes, if they are there and no plan of its own is needed.
  std::shared_ptr<instance> make_from_template(const dim_bindings& sizes);
  // The same. `report` is that of finalizing them, `jit` the options for kernels that are still missing.
  std::shared_ptr<instance> make_from_plans(const dim_bindings& sizes, const jit_options& jit, jit_report& report);
  std::shared_ptr<instance> make_lazily(program bound, const dim_bindings& sizes);
  void watch(const std::shared_ptr<instance>& made);
  ranged_kernels& general_kernels();
  open_plans* general_plans(const jit_options& options, jit_report* report = nullptr);
  // Plans whose kernels are exact for some dims, and what is known about replaying them.
  struct exact_plans {
    dim_bindings exact;
    open_plans plans;
    graph_memory graphs;
  };
  std::shared_ptr<exact_plans> plans_for(const dim_bindings& exact, exact_kernels which);
  void compile_in_background(const dim_bindings& exact);
  void finalize_general(const dim_bindings& sizes);
  program portable_;
  std::optional<verify_ahead> verifying_;  // for GPUs
  double read_ms_ = 0;
  std::unique_ptr<session_resources> resources_;
  std::optional<size_resolver> data_sizes_;  // if data decide sizes of portable_
  std::mutex making_mutex_;                  // one instance is made at a time, with all threads
  bool made_any_ = false;                    // under making_mutex_
  std::mutex ranged_mutex_;                  // guards ranged_kernels_
  std::optional<ranged_kernels> ranged_kernels_;
  std::optional<open_plans> general_plans_;  // of these kernels; under ranged_mutex_, as is what follows
  graph_memory general_graphs_;              // what is known about replaying them
  bool general_plans_tried_ = false;
  std::list<std::shared_ptr<exact_plans>> exact_plans_;  // the most recently used first
  std::set<dim_bindings> not_ready_;                     // exact kernels that the background was given
  std::atomic<bool> general_ready_ = false;              // ranged_kernels_ are finalized
  std::atomic<bool> general_wanted_ = false;             // now: the background leaves it to the caller
  mutable std::mutex mutex_;                             // guards what follows
  std::list<std::shared_ptr<instance>> instances_;       // the most recently used first
  background_work background_;                           // destroyed first
};

// The symbols of `p` that these inputs determine, by name: their shapes, and the elements of those whose values are
// sizes. Throws error{invalid_shape} where an input contradicts the model.
dim_bindings sizes_of_inputs(const program& p, const std::map<std::string, literal>& given);

}  // namespace kiln
