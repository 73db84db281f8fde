// Bodies of control flow: a body becomes a module. Outer values that it uses become arguments; constants are repeated
// inside.
#pragma once

#include <string>
#include <vector>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// The outer values that bodies take as arguments, without constants, in order of first use.
struct captures {
  std::vector<std::string> names;
  std::vector<value> values;
};

void capture(node& n, const ::onnx::GraphProto& body, captures& into);

// A module for a body, its builder and scope. Parameters are added in the order that the caller needs.
struct body_module {
  body_module(node& n, const std::string& role)
      : made(n.owner.state().result.add_module(role + "_" + std::to_string(n.owner.state().bodies++))),
        b(made, n.b.knowledge(), n.owner.state().budget),
        inside(n.owner.state(), b, &n.owner),
        outer(n.b) {}
  void parameter(const std::string& name, const shape& type) { inside.define(name, made.add_parameter(name, type)); }
  void capture(const captures& c) {
    for (std::size_t i = 0; i < c.names.size(); ++i) {
      value p = made.add_parameter("outer." + c.names[i], c.values[i].type());
      if (auto elements = outer.known(c.values[i])) b.set_known(p, *elements);
      inside.define(c.names[i], p);
    }
  }
  module& made;
  builder b;
  scope inside;
  builder& outer;
};

// "0", "1", ...: names for the outputs of a body.
std::vector<std::string> numbered(std::size_t count);
std::vector<value> all_outputs(value first, std::size_t count);

}  // namespace kiln::onnx_import
