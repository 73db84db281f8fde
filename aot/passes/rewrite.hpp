// Rewrite rules and the driver that applies them. A rule is a pattern over one instruction and a function that builds
// the replacement. The driver sweeps over a module until no rule changes anything.
#pragma once

#include <functional>
#include <list>
#include <span>
#include <string_view>
#include <vector>

#include "ir/matcher.hpp"
#include "ir/module.hpp"
#include "ir/ops/all.hpp"

namespace kiln {

class rewrite_log;

using place = std::list<instruction>::iterator;

// module::insert in constant time: it takes an iterator, whereas module::insert has to search for the instruction.
value insert_at(module& m, place before, operation op, std::vector<value> inputs);

// Builds replacements in front of one instruction. New instructions inherit that instruction's origin.
class rewriter {
 public:
  rewriter(module& m, place root) : module_(m), root_(root) {}
  module& in() { return module_; }
  instruction* root() { return &*root_; }

  value add(operation op, std::vector<value> inputs);
  value constant(literal data);
  // A tensor with `number` in every element: a broadcast scalar constant.
  value splat(const shape& type, double number);
  value apply(scalar_function f, std::vector<value> inputs) { return add(elementwise{f}, std::move(inputs)); }
  // These return `v` itself if there is nothing to do.
  value broadcast_to(value v, const std::vector<dim>& dims);
  value reshape_to(value v, const std::vector<dim>& dims);
  value transpose_by(value v, const std::vector<std::int64_t>& permutation);
  value convert_to(value v, element_type type);

 private:
  module& module_;
  place root_;
};

struct rule {
  std::string_view name;
  match::matcher pattern;
  // Returns the value that replaces the root's first output; it has the same shape. Returns null if the rule does not
  // apply after all.
  std::function<value(rewriter&, value root, const match::captures&)> make;
};

// Returns whether anything changed. Dead instructions are erased between sweeps. If rules undo each other, the driver
// stops with a warning. The log, if any, gets each rule that fired, under the name of the pass.
bool apply_rules(module& m, std::span<const rule> rules, rewrite_log* log = nullptr, std::string_view pass = {});

}  // namespace kiln
