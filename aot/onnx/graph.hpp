// Graphs to modules. A scope is one ONNX graph while it is being imported: names to values, on top of the scope around
// it. Bodies of If and Loop become modules of their own, whose captures of outer names are explicit parameters.
#pragma once

#include <array>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "aot/onnx/dim_param.hpp"
#include "aot/onnx/import.hpp"
#include "aot/onnx/import_budget.hpp"
#include "aot/onnx/node.hpp"
#include "aot/onnx/tensors.hpp"

namespace kiln::onnx_import {

// A count that depends on data, while it is a symbol (counted_dims.hpp).
struct counted_dim {
  dim symbol;
  value count;            // i64[1], in the main module
  std::int64_t most = 0;  // what it is at most
};

// What all scopes of one import share.
struct import_state {
  program result;
  external_files files;
  const import_options& options;
  import_budget budget;
  std::map<std::string, std::int64_t> opsets;  // by domain, of the model or of the function being expanded
  std::map<std::pair<std::string, std::string>, const ::onnx::FunctionProto*>
      functions;  // the model's own, by domain and name
  dim_knowledge known = {};
  dim_params dimensions = {};             // of the main graph's inputs
  bool values_as_symbols = false;         // of the main graph's small integer inputs
  std::map<std::string, dim> equal = {};  // symbols that other dimensions determine (unify.hpp)
  int depth = 0;                          // of nested graphs, bounded
  int bodies = 0;                         // modules made for bodies, to name them
  std::vector<counted_dim> counted = {};
  std::map<value, std::array<value, 2>> non_zero =
      {};  // the places of what is not zero, and their count, where they have been looked for
};

class scope {
 public:
  // `around` may be null. Several scopes may add to one builder.
  scope(import_state& state, builder& b, scope* around) : state_(state), b_(b), around_(around) {}

  import_state& state() { return state_; }
  builder& build() { return b_; }

  // Adds the graph's inputs as parameters of the module.
  void add_inputs(const ::onnx::GraphProto& graph);
  // Registers initializers and imports all nodes. The graph's tensors are consumed.
  void run(::onnx::GraphProto& graph);
  std::vector<value> outputs(const ::onnx::GraphProto& graph);

  // Empty where no scope knows the name.
  value find(const std::string& name);
  void define(const std::string& name, value v);
  literal tensor(::onnx::TensorProto& proto, const std::string& what) { return take_tensor(proto, state_.files, what); }

 private:
  void import_node(::onnx::NodeProto& proto, int index);
  std::vector<value> import_function(const ::onnx::FunctionProto& function, const ::onnx::NodeProto& call,
                                     const std::vector<value>& inputs);
  import_state& state_;
  builder& b_;
  scope* around_;
  std::unordered_map<std::string, value> values_;
  std::unordered_map<std::string, ::onnx::TensorProto*> initializers_;  // not used yet
  std::unordered_set<std::string> absent_;  // optional inputs of a function that its call leaves out
};

// What the dimensions of the graph's inputs are called and may be: fills state.dimensions and state.known.
void read_dimensions(import_state& state, const ::onnx::GraphProto& graph);

// Names that the graph (or one nested in it) uses and does not define, in order of first use.
std::vector<std::string> outer_names(const ::onnx::GraphProto& graph);

// The type of a graph's input; unnamed dimensions become symbols called after it.
shape declared_shape(import_state& state, const ::onnx::ValueInfoProto& info);

}  // namespace kiln::onnx_import
