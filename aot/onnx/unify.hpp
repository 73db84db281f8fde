// Handles two dimensions that a shape rule requires to be equal but that differ as expressions. Finds a symbol that can
// be replaced to make them equal. The importer then starts again with the symbol replaced, so that the program's shapes
// contain the equality. An input that violates the equality is refused by name when the program runs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/dim_facts.hpp"
#include "ir/dims_differ.hpp"
#include "ir/program.hpp"

namespace kiln::onnx_import {

// Facts about the dimensions of an import, and the equalities that it assumes.
struct dim_knowledge {
  dim_facts facts;
  std::vector<dim_guard> guards;  // become the program's guards
  // Guards apply only where this expression is 1. While a branch of a choice is imported, it is 1 where the branch is
  // taken and 0 elsewhere.
  dim when = 1;
  // Symbols that are not assumed to equal what they broadcast against (import_options::may_be_one).
  std::set<std::string> may_be_one = {};
};

// Returns the symbol and the expression that replaces it. Returns nullopt if no symbol can be isolated, or if the
// symbol cannot have that value.
std::optional<std::pair<std::string, dim>> make_equal(const dim& a, const dim& b, const dim_facts& facts);

// Returns true if for usual sizes the two dims are never equal, except where both are 1 or 0, but one of them is 1 for
// some.
bool equal_only_at_one(const dim& a, const dim& b, const dim_facts& facts);

// From now on the two dimensions of the error are assumed to be equal, and a guard checks that at run time. Throws the
// error if a symbol can be replaced instead, or if the dimensions are never equal.
void take_as_equal(dim_knowledge& known, const dims_differ& wanted, const std::string& who);

// Chooses which of two dimensions that are assumed equal stands for both.
const dim& representative(const dim& a, const dim& b);

}  // namespace kiln::onnx_import
