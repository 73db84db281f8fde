// Graph replay in one context: what the next run is to be, its graphs, the measurements of `automatic`, and what came
// of it all. A failure anywhere is counted and said in the report; the run that met it goes on with launches from where
// it was, and all later runs are eager. Used by one thread at a time. Nothing here throws into a run. Graphs go with
// the object: the context waits for its runs first.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "runtime/graph/segment_graphs.hpp"
#include "runtime/graph/trial.hpp"

namespace kiln {

class graph_replay {
 public:
  // `of` and `target` outlive it.
  graph_replay(const plan& of, device& target, const graph_options& options);

  // Before a run, which is then as this says until the next call.
  void begin_run();
  // The part of the plan that begins at this step as a graph; the number of steps that were enqueued, 0 where the
  // caller has to run them.
  std::size_t run(std::uint32_t block, std::size_t step, plan_pointers& pointers, device_stream& stream) noexcept;
  // After a run that went well; its time counts where something is measured.
  void end_run(double milliseconds);

  // The same for runs that nobody waits for: events lie around the work of a run, and are looked at when later runs
  // begin.
  void begin_queued(device_stream& stream);
  void end_queued(device_stream& stream);
  // Whether the run makes launches one by one though later ones may be graphs: then it belongs on the device's own
  // stream. NVIDIA's driver (13.0) makes all graphs of a process slower, for good, once two streams have been given
  // eight launches each, and the device's own has those of `prepare`.
  bool on_own_stream() const { return !eager_for_good_ && (way_ == run_way::eager || before_capture()); }
  // Whether any run may be a graph.
  bool may_replay() const { return !eager_for_good_; }
  // The last run was not a fair measurement.
  void forget_run() { measuring_ = false; }

  // Whether later runs may go another way than this one.
  bool measuring() const { return !eager_for_good_ && !decision_ && (trial_ || !prepared_); }
  std::optional<graph_decision> decision() const { return decision_; }
  graph_report report() const;

 private:
  struct queued_run {
    std::unique_ptr<device_event> begin, end;
    graph_trial::turn turn;
    double host_ms = 0;
  };

  void prepare();
  // What drivers load late cannot be loaded into a capture, so a captured part is run once before.
  bool before_capture() const { return runs_ == 1 && captures_; }
  void start_trial();
  void take(const graph_trial::turn& turn, double milliseconds);
  std::size_t made() const { return counts_.captures + counts_.rebuilds; }
  void look_at_queued();
  void fail(const char* what) noexcept;

  const plan* plan_;
  device* device_;
  graph_options options_;
  bool eager_for_good_ = false, prepared_ = false;
  bool captures_ = false;         // some of the graphs
  run_way way_ = run_way::eager;  // of the run under way, or the last one
  graph_trial::turn turn_;        // of the run under way, where something is measured
  bool measuring_ = false;        // the run under way is timed
  std::size_t made_before_ = 0;   // graphs, when it began
  bool launched_ = false;         // the run under way launched a graph
  std::size_t runs_ = 0;
  std::vector<graph_segment> parts_;
  std::vector<segment_graphs> graphs_;               // per part
  std::vector<std::vector<std::uint32_t>> part_at_;  // per block and step: part + 1, 0 for none
  std::unique_ptr<graph_trial> trial_;
  std::optional<graph_decision> decision_;
  std::array<queued_run, 8> queued_;               // a ring
  std::size_t queued_begin_ = 0, queued_end_ = 0;  // those whose end is waited for
  queued_run* open_ = nullptr;                     // the queued run under way
  std::chrono::steady_clock::time_point queued_since_;
  graph_counts counts_;
  std::size_t replays_ = 0, failures_ = 0;
  std::string reason_;
};

}  // namespace kiln
