// Finds the sizes of a program that its data decide: runs the parts that compute them (size_stages.hpp). Any thread.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ir/literal.hpp"
#include "ir/size_stages.hpp"

namespace kiln {

class size_resolver {
 public:
  // Runs a part of the program at these values of its open dimensions, with inputs in the order of its parameters. Any
  // thread may call it.
  using part_runner = std::function<std::vector<literal>(const dim_bindings& sizes, std::span<const literal> inputs)>;
  // Prepares a part for runs. Called when the part is first needed.
  using opener = std::function<part_runner(program part)>;

  // `p` must outlive this object.
  size_resolver(const program& p, opener open) : program_(p), open_(std::move(open)) {}

  // Adds the sizes that these inputs decide to `sizes`, which must have a value for each other symbol of the program. A
  // size that has a value already keeps it. Throws error{usage} that names an input which is needed and not there.
  void add(dim_bindings& sizes, const std::map<std::string, literal>& inputs);

 private:
  struct stage {
    std::vector<std::string> symbols, open, parameters;
    part_runner run;
  };
  std::vector<stage>& stages();
  const program& program_;
  const opener open_;
  std::mutex mutex_;  // guards stages_
  std::vector<stage> stages_;
};

}  // namespace kiln
