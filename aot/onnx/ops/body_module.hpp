// Converts a control-flow body into a module. Outer values that the body uses become its arguments; constants are
// copied into it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// The names of a body's parameters that are outer values begin with this.
inline constexpr std::string_view outer_prefix = "outer.";

// The outer values that a body takes as arguments, in order of first use. Constants are not among them.
// Where a size of a value depends on data, the body gets the value with room for the largest size, and the count.
struct captures {
  std::vector<std::string> names;
  std::vector<value> values;  // in the order of the names; after these, the numbers i64[1] of `counts`
  std::vector<std::vector<dim>> dims;
  std::vector<dim> counts;
  // Of a sequence, the value is the tensor that holds its parts.
  std::vector<std::optional<compound>> sequences;
};

// May be called again, to add what another body uses.
void capture(node& n, const ::onnx::GraphProto& body, captures& into);

// The module of a body with its builder and scope. The caller adds the parameters in the order it needs.
struct body_module {
  body_module(node& n, const std::string& role)
      : made(n.owner.state().result.add_module(role + "_" + std::to_string(n.owner.state().bodies++))),
        b(made, n.b.knowledge(), n.owner.state().budget),
        inside(n.owner.state(), b, &n.owner),
        outer(n.b) {}
  void parameter(const std::string& name, const shape& type) { inside.define(name, made.add_parameter(name, type)); }
  void capture(const captures& c);
  module& made;
  builder b;
  scope inside;
  builder& outer;
};

// paddle2onnx gives a flag or an index once as bool[] and once as bool[1]. A single element of another rank gets the
// rank of `wanted`; other values stay as they are.
value with_rank_of(builder& b, value v, const shape& wanted);

// Returns the names "0", "1", ... for the outputs of a body.
std::vector<std::string> numbered(std::size_t count);
std::vector<value> all_outputs(value first, std::size_t count);

}  // namespace kiln::onnx_import
