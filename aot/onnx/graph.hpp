// Converts ONNX graphs to modules. A scope is one ONNX graph during its import: it maps names to values and falls back
// on the enclosing scope. Bodies of If and Loop become modules of their own; names captured from outside become
// explicit parameters.
#pragma once

#include <array>
#include <list>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "aot/onnx/branch_decisions.hpp"
#include "aot/onnx/dim_param.hpp"
#include "aot/onnx/functions.hpp"
#include "aot/onnx/import.hpp"
#include "aot/onnx/import_budget.hpp"
#include "aot/onnx/node.hpp"
#include "aot/onnx/sequences.hpp"
#include "aot/onnx/tensors.hpp"
#include "aot/onnx/texts.hpp"

namespace kiln::onnx_import {

// A data-dependent count, represented in shapes by a symbol (bounded_dims.hpp).
struct bounded_dim {
  dim symbol;
  value count;   // i64[1], in the main module
  dim most = 0;  // upper bound of the count; contains no counts
};

// A number that the main graph computes and that is a size, represented in shapes by a symbol (sizes_of_data.hpp).
struct size_of_data_symbol {
  dim symbol;
  value number;  // i64[1], in the main module
};

// State shared by all scopes of one import.
struct import_state {
  program result;
  external_files files;
  const import_options& options;
  import_budget budget;
  // By domain; of the model, or of the function being expanded.
  std::map<std::string, std::int64_t> opsets;
  // Functions that the model defines.
  std::map<function_key, const ::onnx::FunctionProto*> functions;
  dim_knowledge known = {};
  dim_params dimensions = {};  // dimensions of the main graph's inputs
  // Whether elements of the main graph's small integer inputs are treated as symbols.
  bool values_as_symbols = false;
  // Inputs of which it is known that they decide no size; null if none is (input_values.hpp).
  const std::set<std::string>* plain_inputs = nullptr;
  // Whether numbers that the main graph computes may become symbols, too (sizes_of_data.hpp), and those that did.
  bool data_decides_sizes = false;
  std::vector<size_of_data_symbol> sizes_of_data = {};
  // Least values of those of these symbols that may be negative (input_values.hpp); null if none may be.
  const std::map<std::string, std::int64_t>* least_values = nullptr;
  std::map<std::string, dim> equal = {};  // symbols that are defined by other dimensions (unify.hpp)
  // Shared by all attempts to import the model.
  branch_decisions* branches = nullptr;
  int depth = 0;   // nesting depth of graphs, bounded
  int bodies = 0;  // number of modules created for bodies, used to name them
  std::vector<bounded_dim> bounded = {};
  // Instructions whose handlers have dealt with padding (bounded_values.hpp).
  std::set<const instruction*> padding_allowed = {};
  // For a value: the positions of its nonzero elements and their count, once they have been computed.
  std::map<value, std::array<value, 2>> non_zero = {};
  // The counts of slices between computed places, by start, end and the size of the axis.
  std::map<std::tuple<value, value, std::string>, value> slices = {};
  text_lists texts = {};
  // Sequences and optionals, keyed by their placeholder (sequences.hpp).
  std::map<value, compound> compounds = {};
  // Whether a dimension along which the graph appends to an input may be 0 (empty_pasts.hpp), and whether there is one.
  bool pasts_may_be_empty = true, has_empty_pasts = false;
};

class scope {
 public:
  // `around` is the enclosing scope and may be null. Several scopes may add to one builder.
  scope(import_state& state, builder& b, scope* around) : state_(state), b_(b), around_(around) {}

  import_state& state() { return state_; }
  builder& build() { return b_; }
  scope* around() { return around_; }

  // Adds the graph's inputs as parameters of the module.
  void add_inputs(const ::onnx::GraphProto& graph);
  // Registers initializers and imports all nodes. Moves the tensors out of the graph.
  void run(::onnx::GraphProto& graph);
  std::vector<value> outputs(const ::onnx::GraphProto& graph);

  // Returns an empty value if no scope knows the name.
  value find(const std::string& name);
  // Like the function above, but only for values of this scope that are already imported.
  value imported(const std::string& name) const;
  void define(const std::string& name, value v);
  literal tensor(::onnx::TensorProto& proto, const std::string& what) { return take_tensor(proto, state_.files, what); }
  literal tensor(::onnx::SparseTensorProto& proto, const std::string& what) {
    return take_dense(proto, state_.files, state_.budget, what);
  }

 private:
  void import_node(::onnx::NodeProto& proto, int index);
  std::vector<value> import_operator(::onnx::NodeProto& proto, const std::string& domain, std::vector<value> inputs);
  std::vector<value> import_function(const ::onnx::FunctionProto& function, const ::onnx::NodeProto& call,
                                     const std::vector<value>& inputs);
  import_state& state_;
  builder& b_;
  scope* around_;
  std::unordered_map<std::string, value> values_;
  // Initializers that have not been used yet.
  std::unordered_map<std::string, ::onnx::TensorProto*> initializers_;
  // Optional inputs of a function that the call omits.
  std::unordered_set<std::string> absent_;
};

// Reads the names and ranges of the dimensions of the graph's inputs into state.dimensions and state.known.
void read_dimensions(import_state& state, const ::onnx::GraphProto& graph);

// Returns the names that the graph, or a graph nested in it, uses but does not define, in order of first use.
std::vector<std::string> outer_names(const ::onnx::GraphProto& graph);

// Returns the type of a graph input. An unnamed dimension becomes a symbol named after the input.
shape declared_shape(import_state& state, const ::onnx::ValueInfoProto& info);

}  // namespace kiln::onnx_import
