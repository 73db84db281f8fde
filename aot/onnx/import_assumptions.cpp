#include "aot/onnx/import_assumptions.hpp"

#include <algorithm>

#include "aot/onnx/input_values.hpp"
#include "aot/onnx/unify.hpp"

namespace kiln::onnx_import {
namespace {

// The symbols that were taken as equal to one that must now be 1, and that one itself. Empty if there are none.
std::set<std::string> equal_to_one(const std::map<std::string, dim>& equal,
                                   const std::pair<std::string, dim>& solution) {
  std::set<std::string> result;
  if (!(solution.second == dim(1))) return result;
  for (const auto& [symbol, meaning] : equal)
    if (meaning == dim::symbol(solution.first)) result.insert({symbol, solution.first});
  return result;
}

}  // namespace

void import_assumptions::begin(import_state& state) {
  state.equal = equal_;
  state.values_as_symbols = values_as_symbols_;
  state.data_decides_sizes = data_decides_sizes_;
  if (values_may_be_negative_) state.least_values = &least_values_;
  state.plain_inputs = &plain_inputs_;
  state.pasts_may_be_empty = pasts_may_be_empty_;
  state.branches = &branches_;
  branches_.begin();
}

bool import_assumptions::improve(const std::map<std::string, std::vector<dim>>& decide_no_size) {
  if (decide_no_size.empty() || (improves_ && plain_inputs_.empty())) return false;
  improves_ = true;
  for (const auto& [name, elements] : decide_no_size) {
    plain_inputs_.insert(name);
    for (const dim& each : elements) least_values_.emplace(each.str(), -INT32_MAX);
  }
  return true;
}

bool import_assumptions::make_equal_to_each_other(const error& failure, const import_state& failed) {
  const auto* differ = dynamic_cast<const dims_differ*>(&failure);
  if (!differ) return false;
  auto solution = make_equal(differ->a(), differ->b(), failed.known.facts);
  if (!solution || equal_.contains(solution->first)) return false;
  const std::set<std::string> ones = equal_to_one(equal_, *solution);
  if (ones_may_stretch_ && !std::ranges::includes(options_.may_be_one, ones)) {
    options_.may_be_one.insert(ones.begin(), ones.end());
    forget();
    return true;
  }
  for (auto& [symbol, meaning] : equal_) meaning = meaning.replace({*solution});
  equal_.insert(*solution);
  return true;
}

bool import_assumptions::assume_more(const error& failure, const import_state& failed) {
  if (make_equal_to_each_other(failure, failed)) return true;
  const bool needs_values = dynamic_cast<const value_needed*>(&failure);
  if (needs_values && !values_as_symbols_) {
    values_as_symbols_ = true;
    return true;
  }
  if (values_may_be_negative_ && !least_values_.empty()) {
    values_may_be_negative_ = false;
    forget();
    return true;
  }
  if (options_.may_be_one.size() != given_.may_be_one.size()) {
    options_.may_be_one = given_.may_be_one;
    ones_may_stretch_ = false;
    forget();
    return true;
  }
  if (!first_failure_) first_failure_ = std::current_exception();
  if (data_decides_sizes_ || !(needs_values || !failed.bounded.empty())) return false;
  values_as_symbols_ = values_may_be_negative_ = data_decides_sizes_ = true;
  least_values_.clear();
  forget();
  return true;
}

bool import_assumptions::change(const error& failure, const import_state& failed) {
  // The options are wrong, whatever failed before.
  if (data_decides_sizes_ && failure.kind() == error_kind::usage) throw;
  if (const auto* negative = dynamic_cast<const negative_value_wanted*>(&failure)) {
    least_values_[negative->symbol] = negative->least;
    return true;
  }
  if (improves_) {
    const bool negative_left = !plain_inputs_.empty() && values_may_be_negative_;
    plain_inputs_.clear();
    return negative_left;
  }
  if (branches_.again()) return true;
  if (!branches_.wanted() && assume_more(failure, failed)) return true;
  if (branches_.next_attempt(equal_)) return true;
  if (!failed.has_empty_pasts) std::rethrow_exception(first_failure_);
  pasts_may_be_empty_ = values_as_symbols_ = data_decides_sizes_ = false;
  first_failure_ = nullptr;
  forget();
  return true;
}

}  // namespace kiln::onnx_import
