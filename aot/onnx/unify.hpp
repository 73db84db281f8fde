// Two dimensions that a shape rule wants to be equal, and that differ as expressions: which symbol has to be what for
// them to be equal. The importer starts again with the symbol replaced, so that the program has the equality in its
// shapes. An input that does not keep to it is then refused by name when the program runs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/dim_facts.hpp"
#include "ir/dims_differ.hpp"
#include "ir/program.hpp"

namespace kiln::onnx_import {

// What an import knows about its dimensions, and what it has to take for granted.
struct dim_knowledge {
  dim_facts facts;
  std::vector<dim_guard> guards;  // become those of the program
};

// Symbol → expression. nullopt where no symbol can be isolated, or where it would have to be something that it cannot.
std::optional<std::pair<std::string, dim>> make_equal(const dim& a, const dim& b, const dim_facts& facts);

// From now on the two dimensions of the error count as equal: a guard. Throws the error where a symbol can be replaced
// instead, or where they are never equal.
void take_as_equal(dim_knowledge& known, const dims_differ& wanted, const std::string& who);

// Which of two dimensions that count as equal stands for both.
const dim& representative(const dim& a, const dim& b);

}  // namespace kiln::onnx_import
