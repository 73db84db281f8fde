#include "aot/onnx/branch_decisions.hpp"

namespace kiln::onnx_import {

std::optional<bool> branch_decisions::taken(int number) const {
  for (const decision& d : made_)
    if (d.number == number) return d.taken;
  return std::nullopt;
}

bool branch_decisions::next_attempt(equalities& equal) {
  if (wanted_) {
    made_.push_back({*wanted_, false, equal});
    return true;
  }
  while (!made_.empty() && made_.back().taken) made_.pop_back();
  if (made_.empty()) return false;
  made_.back().taken = true;
  equal = made_.back().before;
  return true;
}

}  // namespace kiln::onnx_import
