// Ifs whose condition is a comparison of sizes and whose branches give results of different ranks, such as
// `If(n == 1) Squeeze else Identity` (torch's squeeze of an open dimension). The rank of a value is fixed at import, so
// the importer assumes one branch and a guard checks the sizes at run time. It assumes the else branch first, which
// exporters write for the general case, and starts again with the other one where the model makes no sense then.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.hpp"

namespace kiln::onnx_import {

class branch_decisions {
 public:
  using equalities = std::map<std::string, dim>;  // import_state::equal

  // Of one attempt to import the model. The number of an If in the order of import.
  void begin() { seen_ = 0, wanted_.reset(); }
  int number() { return seen_++; }
  // The branch of this If that is assumed, if one is.
  std::optional<bool> taken(int number) const;
  // The attempt cannot go on without an assumption for this If. The innermost If of several that ask gets it.
  void want(int number) {
    if (!wanted_) wanted_ = number;
  }
  bool wanted() const { return wanted_.has_value(); }

  // After an attempt that failed: makes the assumption that it wants, or replaces the last one that has an alternative.
  // `equal` becomes what it was at that time. Returns false if everything was tried.
  bool next_attempt(equalities& equal);

 private:
  struct decision {
    int number;
    bool taken;
    equalities before;
  };
  std::vector<decision> made_;
  int seen_ = 0;
  std::optional<int> wanted_;
};

}  // namespace kiln::onnx_import
