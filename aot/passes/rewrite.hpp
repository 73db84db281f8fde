// Rewrite rules and the driver that applies them: a rule is a pattern over one instruction and a function that builds
// what replaces it. The driver sweeps over a module until no rule changes anything.
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

using place = std::list<instruction>::iterator;

// module::insert in constant time: it takes the place itself, where module::insert has to search for the instruction.
value insert_at(module& m, place before, operation op, std::vector<value> inputs);

// Builds replacements in front of one instruction; what it builds inherits that instruction's origin.
class rewriter {
 public:
  rewriter(module& m, place root) : module_(m), root_(root) {}
  module& in() { return module_; }
  instruction* root() { return &*root_; }

  value add(operation op, std::vector<value> inputs);
  value constant(literal data);
  // `number` in every element: a scalar constant behind a broadcast.
  value splat(const shape& type, double number);
  value apply(scalar_function f, std::vector<value> inputs) { return add(elementwise{f}, std::move(inputs)); }
  // These do nothing where there is nothing to do.
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
  // The value that takes the place of the root's first output, of the same shape; null where the rule does not apply
  // after all.
  std::function<value(rewriter&, value root, const match::captures&)> make;
};

// True where something changed. Dead instructions are erased between sweeps. Rules that undo each other are stopped
// with a warning.
bool apply_rules(module& m, std::span<const rule> rules);

}  // namespace kiln
