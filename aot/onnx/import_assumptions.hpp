// What an attempt to import a model assumes about its sizes and branches, and what the next one assumes when it has
// failed.
//
// - If two different symbols must be equal, one replaces the other. This ends, because each attempt has one symbol
// less.
//   If such symbols must then be 1, they are not taken as equal where they broadcast, unless that fails.
// - If values are needed, the elements of small inputs become symbols. They may be negative where an operator asks for
//   it, unless that fails.
// - Inputs that turn out to decide no size are imported again as data. If that fails (one decides the trips of a loop
//   whose results are not used), they may be negative; if that fails, the earlier program stands.
// - If a branch must be assumed, or the branches of an If merged, the next attempt does so (branch_decisions.hpp).
// - If all of that fails, numbers that the model computes may decide sizes.
// - If all of that fails with pasts that may be empty, everything is tried again with pasts of at least one element.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aot/onnx/branch_decisions.hpp"
#include "aot/onnx/graph.hpp"
#include "aot/onnx/import.hpp"

namespace kiln::onnx_import {

class import_assumptions {
 public:
  explicit import_assumptions(const import_options& options) : given_(options), options_(options) {}

  // The options with the dimensions that may be 1 where they broadcast.
  const import_options& options() const { return options_; }
  // Call at the beginning of an attempt. The state must not outlive this object.
  void begin(import_state& state);

  // Call when an attempt has succeeded, with what check_values() returned. Returns whether another attempt may make a
  // better program.
  bool improve(const std::map<std::string, std::vector<dim>>& decide_no_size);
  // Call in the handler of an attempt's failure. Returns false if the program of an earlier attempt stands. Throws the
  // first failure that had all the assumptions it asked for if nothing is left to try.
  bool change(const error& failure, const import_state& failed);

 private:
  bool make_equal_to_each_other(const error& failure, const import_state& failed);
  // Of a failure that asks for no branch.
  bool assume_more(const error& failure, const import_state& failed);
  void forget() { equal_.clear(), branches_ = {}; }

  const import_options& given_;
  import_options options_;
  bool ones_may_stretch_ = true;  // options_.may_be_one may be extended; no longer if an import with more has failed
  std::map<std::string, dim> equal_;
  branch_decisions branches_;
  bool values_as_symbols_ = false, data_decides_sizes_ = false, pasts_may_be_empty_ = true;
  // Least values of elements of inputs that may be negative; no longer used once an import with them has failed.
  std::map<std::string, std::int64_t> least_values_;
  bool values_may_be_negative_ = true;
  bool improves_ = false;  // an attempt has succeeded
  std::set<std::string> plain_inputs_;
  std::exception_ptr first_failure_;
};

}  // namespace kiln::onnx_import
