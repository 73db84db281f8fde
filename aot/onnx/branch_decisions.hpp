// Handles an If whose condition compares sizes and whose branches return different ranks, such as `If(n == 1) Squeeze
// else Identity` (torch's squeeze of an open dimension). Ranks are fixed at import, so the importer assumes one branch
// and adds a guard that checks the sizes at run time. It first assumes the else branch, which exporters use for the
// general case. If the rest of the model cannot be imported then, it starts again with the other branch.
// An If whose condition is data may turn out to give sizes that depend on data. The importer starts again and merges
// its branches then (ops/merged_branches.hpp).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/dim.hpp"

namespace kiln::onnx_import {

class branch_decisions {
 public:
  using equalities = std::map<std::string, dim>;  // import_state::equal

  // Call at the beginning of each attempt to import the model.
  void begin() { seen_ = 0, wanted_.reset(), again_ = false; }
  int number() { return seen_++; }
  // Returns the branch that is assumed for the If with this number (in the order of import), or nullopt.
  std::optional<bool> taken(int number) const;
  // Records that the attempt needs an assumption for this If. If several nested Ifs ask, the innermost one gets it.
  void want(int number) {
    if (!wanted_) wanted_ = number;
  }
  bool wanted() const { return wanted_.has_value(); }
  // Records that both branches of this If must be computed in the graph that holds it. The attempt must fail then.
  void merge(int number) { again_ |= merged_.insert(number).second; }
  bool merges(int number) const { return merged_.contains(number); }
  // Returns true if this attempt has recorded such an If.
  bool again() const { return again_; }

  // Call after a failed attempt. Adds the assumption that the attempt needs, or replaces the last assumption that has
  // an alternative, and restores `equal` to its value at that point. Returns false if all combinations were tried.
  bool next_attempt(equalities& equal);

 private:
  struct decision {
    int number;
    bool taken;
    equalities before;
  };
  std::vector<decision> made_;
  std::set<int> merged_;
  bool again_ = false;
  int seen_ = 0;
  std::optional<int> wanted_;
};

}  // namespace kiln::onnx_import
