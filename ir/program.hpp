// A whole model: its main module, the bodies of If and Loop, and the kernels that code objects refer to.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/code_object.hpp"
#include "ir/module.hpp"

namespace kiln {

// A symbolic dimension that the file leaves open: `--dim NAME=MIN:MAX[:OPT,...]`.
struct dim_range {
  std::int64_t min = 1, max = INT64_MAX;
  std::vector<std::int64_t> optimal;
  friend bool operator==(const dim_range&, const dim_range&) = default;
};

// Two dimensions that an operator of the model requires to be equal, but whose equality depends on the symbols. Checked
// when the symbols get values.
struct dim_guard {
  dim a, b;
  std::string why;  // the operator that requires it
  friend bool operator==(const dim_guard&, const dim_guard&) = default;
};

class program {
 public:
  program();
  program(program&&) = default;
  program& operator=(program&&) = default;

  module& main() { return modules_.front(); }
  const module& main() const { return modules_.front(); }
  std::list<module>& modules() { return modules_; }  // main first
  const std::list<module>& modules() const { return modules_; }
  module& add_module(std::string name);
  void erase_unreachable_modules();

  // Maps payload hash to payload. Equal payloads are stored once.
  using kernel_table = std::map<content_hash, std::shared_ptr<const std::vector<std::byte>>>;
  const kernel_table& kernels() const { return kernels_; }
  content_hash add_kernel(std::vector<std::byte> payload);
  void add_kernel(const content_hash& hash, std::shared_ptr<const std::vector<std::byte>> payload);
  std::span<const std::byte> kernel(const content_hash& hash) const;  // throws error{corrupted} if it is missing
  void erase_unused_kernels();

  std::map<std::string, dim_range> symbols;  // open dimensions
  std::vector<dim_guard> guards;
  std::map<std::string, std::string> metadata;  // producer and options; must be deterministic

  program clone() const;
  // Returns a clone in which every symbol of `bindings` is replaced in all modules. Throws error{usage} if a value is
  // outside its range or a guard fails.
  program bind(const dim_bindings& bindings) const;
  void validate() const;
  std::string str() const;

 private:
  std::list<module> modules_;
  kernel_table kernels_;
};

// Runs a module with the reference implementations: slow, but the ground truth. `inputs` are in the order of
// parameters(); the result is in the order of the outputs. Throws error{not_native} on a portable code_object.
std::vector<literal> evaluate(const module& m, std::span<const literal> inputs);

// The same, but calls `run_kernel` for every code object (also in bodies); it returns the kernel's outputs.
using kernel_runner = std::function<std::vector<literal>(const instruction& kernel, std::span<const literal> inputs)>;
std::vector<literal> evaluate(const module& m, std::span<const literal> inputs, const kernel_runner& run_kernel);

}  // namespace kiln
