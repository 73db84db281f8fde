// The inputs, outputs and open dimensions of a program as its file declares them, and how the inputs of a call decide
// sizes. A value; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace kiln {

struct model_port {
  std::string name;
  shape declared;
  // Sizes depend on its elements: some of them are symbols, or the model computes sizes from them (ir/size_stages.hpp).
  bool decides_sizes = false;
};

struct model_interface {
  std::vector<model_port> inputs, outputs;  // in the order of the main module
  std::map<std::string, dim_range> symbols;
};

model_interface interface_of(const program& p);

// One input of a call. `data`, in host memory, may be null if no element of the input is a size.
struct given_input {
  std::vector<std::int64_t> dims;
  const void* data = nullptr;
};

// Returns the values of the symbols that these inputs decide, and those of `told`; one entry per input of the model.
// Throws error{invalid_shape}, naming the input, if one contradicts its declaration, another one or `told`.
dim_bindings sizes_of_inputs(const model_interface& model, std::span<const given_input> inputs,
                             const dim_bindings& told = {});

// The inputs that decide sizes, by name, as size_resolver::add() takes them. Only these must be in host memory.
std::map<std::string, literal> literals_of(const model_interface& model, std::span<const given_input> inputs);

}  // namespace kiln
