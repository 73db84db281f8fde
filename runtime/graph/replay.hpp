// Graph replay in one context. It decides how each run executes, owns the graphs, times the runs for the policy
// `automatic`, and reports the result. A run is one call of run_waited() or run_queued(), which asks its caller first
// for the stream and then for the work; a graph_run exists only during that call. A failure is counted and reported:
// the current run continues with eager launches from the failed step, and all later runs are eager. Used by one thread
// at a time. Replay itself never throws into a run. Exceptions of the caller's functions propagate; such a run is not
// measured. The destructor frees the graphs, so the context must wait for its runs first.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/graph/segment_graphs.hpp"
#include "runtime/graph/trial.hpp"
#include "runtime/spare_contexts.hpp"

namespace kiln {

class graph_replay;

// The current run, as seen by the code that executes the plan's steps.
class graph_run {
 public:
  graph_run(const graph_run&) = delete;
  // If a segment of the plan begins at this step, enqueues it as a graph. Returns the number of steps that were
  // enqueued, or 0 if the caller must run the step itself.
  std::size_t replay(std::uint32_t block, std::size_t step, plan_pointers& pointers, device_stream& stream) noexcept;

 private:
  friend class graph_replay;
  explicit graph_run(graph_replay& of) : replay_(of) {}

  graph_replay& replay_;
  std::optional<graph_trial::turn> turn_;  // set if the run is timed
  std::size_t made_before_ = 0;            // number of graphs built before the run
  bool launched_ = false;                  // whether the run launched a graph
};

// The stream of a run. `fair` is false if the run must not be timed because the stream first waits for other work.
struct run_stream {
  device_stream& stream;
  bool fair = true;
};

class graph_replay {
 public:
  // `of` and `target` must outlive this object. Graphs that other plans left (plan::spares) are used where they fit.
  graph_replay(const plan& of, device& target, const graph_options& options);

  // A run whose results are there when `work` returns. `choose(bool own)` gives the run_stream; `own` asks for the
  // device's own stream. `work(graph_run&, device_stream&)` executes the plan.
  template <class Choose, class Work>
  void run_waited(Choose&& choose, Work&& work) {
    graph_run run(*this);
    begin(run);
    const auto since = clock::now();
    const run_stream chosen = choose(wants_own_stream());
    if (!chosen.fair) run.turn_.reset();
    work(run, chosen.stream);
    end_waited(run, since);
  }

  // The same for a run that nobody waits for: `work` returns when everything is enqueued. Events lie around the work,
  // and are looked at when later runs begin.
  template <class Choose, class Work>
  void run_queued(Choose&& choose, Work&& work) {
    graph_run run(*this);
    begin(run);
    const run_stream chosen = choose(wants_own_stream());
    if (!chosen.fair) run.turn_.reset();
    queued_run* timed = begin_queued(run, chosen.stream);
    work(run, chosen.stream);
    end_queued(run, timed, chosen.stream);
  }

  // Whether any run may be a graph.
  bool may_replay() const { return !eager_for_good_; }

  // Whether later runs may go another way than this one.
  bool measuring() const {
    return !eager_for_good_ && (prepared_ ? cold_ || (trial_ && !decision_) : !decision_ || plan_->spares);
  }
  std::optional<graph_decision> decision() const { return decision_; }
  // Returns graphs for later plans (plan::spares). Nothing that was launched may still run, and no run may follow.
  std::vector<spare_graph> release();
  graph_report report() const;

 private:
  friend class graph_run;
  using clock = std::chrono::steady_clock;
  struct queued_run {
    std::unique_ptr<device_event> begin, end;
    graph_trial::turn turn;
    clock::time_point since;
    double host_ms = 0;
  };

  void begin(graph_run& run);
  void end_waited(const graph_run& run, clock::time_point since);
  queued_run* begin_queued(const graph_run& run, device_stream& stream);  // null: not timed
  void end_queued(const graph_run& run, queued_run* timed, device_stream& stream);
  void prepare();
  void choose_way();
  // What a graph of the part must have in common with it.
  spare_graph like(const graph_segment& part) const;
  // Whether the run makes launches one by one though later ones may be graphs: then it belongs on the device's own
  // stream. NVIDIA's driver (13.0) makes all graphs of a process slower, for good, once two streams have been given
  // eight launches each, and the device's own has those of `prepare`.
  bool wants_own_stream() const { return !eager_for_good_ && (way_ == run_way::eager || before_capture()); }
  // Drivers load some code at its first launch, which a capture does not allow. So a captured part is run once before.
  bool before_capture() const { return runs_ == 1 && captures_; }
  void take(const graph_trial::turn& turn, double milliseconds);
  std::size_t made() const { return counts_.captures + counts_.rebuilds; }
  void look_at_queued();
  void fail(const char* what) noexcept;

  const plan* plan_;
  device* device_;
  graph_options options_;
  bool eager_for_good_ = false, prepared_ = false;
  // The first runs of a plan that shares spare graphs: few of the sizes that a model is asked for come back often, so
  // they launch a graph in sequence without measuring anything.
  bool cold_ = false;
  bool captures_ = false;         // some of the graphs
  run_way way_ = run_way::eager;  // of the run under way, or the last one
  std::size_t runs_ = 0;
  bool adopted_ = false;  // whether all parts began with graphs of other plans
  std::vector<graph_segment> parts_;
  std::vector<segment_graphs> graphs_;               // per part
  std::vector<std::vector<std::uint32_t>> part_at_;  // per block and step: part + 1, 0 for none
  std::unique_ptr<graph_trial> trial_;
  std::optional<graph_decision> decision_;
  std::array<queued_run, 8> queued_;               // a ring
  std::size_t queued_begin_ = 0, queued_end_ = 0;  // those whose end is waited for
  graph_counts counts_;
  std::size_t replays_ = 0, failures_ = 0;
  std::string reason_;
};

}  // namespace kiln
