// Threads that combine elements together: how a workgroup is laid out over what reduce, softmax and normalize combine.
//  * inner (the last axis is combined): a team of consecutive threads owns a row, a piece of which is one vector of
//    each; a team is part of a wave, a wave or a workgroup;
//  * outer (the last axis is kept): a thread owns a vector of columns; the members of a team are the threads of a
//    workgroup with one vector.
// A team is what Kokkos calls by this name: threads that share a reduction.
// A thread walks its part of a row in pieces. Their code is written out where they fit its registers, so that they can
// be kept there, and is a loop otherwise. Of rows of an open length the number of pieces is known at run time only.
//
//   row_team team(e, input, axes);
//   team.open("softmax");
//   values state = team.walk({start}, [&](const row_team::place& at, std::span<const Value> state) { ... });
//   values total = team.total(state, combine);     // of all members, in every thread
//   team.each([&](const row_team::place& at) { ... at.where, at.piece ... });
//   team.close();
//
// Internal to mlir_bridge/gpu.
#pragma once

#include <optional>

#include "mlir_bridge/codegen/reduction_axes.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

class row_team {
 public:
  // `splits` is the number of workgroups that share the elements combined into one; a second stage combines their
  // results. "lanes" (of a vector), "team" (its threads, a power of two) and "threads" (of a workgroup) of the
  // configuration overrule the choice.
  row_team(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes, std::int64_t splits = 1);
  row_team(kernel_emitter& e, const kernel_configuration& configuration, value input,
           const std::vector<std::int64_t>& axes, std::int64_t splits);

  const reduction_axes space;
  bool inner() const { return space.inner; }
  std::int64_t lanes() const { return lanes_; }
  std::int64_t team() const { return team_; }
  std::int64_t splits() const { return splits_; }
  // Whether every thread's pieces are written out (place::piece counts them).
  bool in_registers() const { return share_.is_static() && pieces_ <= most_pieces(); }
  std::int64_t pieces() const { return pieces_; }  // of rows of an open length: of a usual one
  // Returns the number of elements that are combined into one, as a value of this type.
  Value count_as(element_type type) const;
  // Workgroups that would share the combined elements with profit, where too few of them are at work otherwise.
  std::int64_t wanted_splits() const;
  // The same for an open number of elements: 1 at the sizes at which it pays, else 0.
  dim shares_results() const;
  // Estimates the cost in cycles if elements are read `passes` times. Elements that stay in registers are read once.
  double cost(std::int64_t passes) const;

  void open(const std::string& name);
  void close() { group_->close(); }
  workgroup& group() { return *group_; }

  struct place {
    // Position of `lanes` elements in the input.
    position where;
    // i1: false for elements that another visit covers; null means always true.
    Value fresh;
    // Index of the piece if the code is unrolled, otherwise -1.
    std::int64_t piece = -1;
  };
  using step = std::function<values(const place&, std::span<const Value>)>;
  values walk(values state, const step& visit) const;
  void each(const std::function<void(const place&)>& visit) const;
  // Returns v where the place is fresh, and `neutral` (with as many lanes) elsewhere.
  Value masked(const place& at, Value v, Value neutral) const;

  // Combines the states of all members, and of all lanes for inner teams. The result is a scalar for inner teams and a
  // vector of columns for outer ones.
  using combiner = workgroup::tuple_combiner;
  values total(values state, const combiner& combine);
  Value total(Value state, const workgroup::combiner& combine);
  // Broadcasts a total so that it can be combined with the elements of a place.
  Value spread(Value total) const { return e_.code.splat(total, inner() ? lanes_ : 1); }

  // Returns the position of the total: 0 along the combined axes. The lanes of an outer team are its columns.
  position total_position() const;
  std::int64_t total_lanes() const { return inner() ? 1 : lanes_; }
  Value split() const { return split_; }
  // Emits code that only the thread which writes a total executes.
  void when_leader(const std::function<void()>& body);
  // Emits code that is executed only if this thread writes at `at`.
  void when_owner(const place& at, const std::function<void()>& body) const;

 private:
  std::int64_t most_pieces() const;
  std::int64_t usual_share() const;
  place at_piece(Value index, bool always) const;
  kernel_emitter& e_;
  code_builder& code_;
  values walk_open(values state, const step& visit) const;
  std::int64_t lanes_ = 1, team_ = 1, rows_per_group_ = 1, threads_ = 64, splits_ = 1, pieces_ = 1, element_bytes_ = 4;
  dim vectors_ = 1, rows_ = 1, share_ = 1;
  dim columns_ = 1;  // vectors of columns, outer
  std::int64_t columns_per_group_ = 1;
  std::optional<workgroup> group_;
  // row_fresh_ is null if it is always true.
  Value member_, column_, split_, row_fresh_;
  // Indices of the kept axes.
  values row_;
};

// Returns the tuning space of a team over these axes. `shares` lists the numbers of splits to try besides 1.
std::vector<candidate> row_team_space(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes,
                                      std::int64_t passes, std::span<const std::int64_t> shares = {});

}  // namespace kiln::gpu
