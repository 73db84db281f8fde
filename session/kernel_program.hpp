// A program that consists of selected kernels, each with separate inputs, so that they can be compiled like any other
// program.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/ops/structure.hpp"
#include "ir/program.hpp"
#include "jit/compile_bytecode.hpp"

namespace kiln {

struct kernel_program {
  // Payloads are read from `portable`, which must outlive this object.
  explicit kernel_program(const program& portable) : portable(portable) {}

  // Adds an instruction that runs the kernel on tensors of these shapes. Its first output is an output of the program.
  // `preferred_one`: its configuration if it has no tuned one.
  void add(const code_object& object, const std::vector<shape>& inputs, const std::vector<shape>& results,
           kernel_configuration preferred_one = {});
  // The outputs of the returned program are the native code objects, in the order in which they were added.
  program compile(const jit_options& options, jit_report* report);

  const program& portable;
  program body = {};
  std::vector<value> outputs = {};
  std::map<content_hash, kernel_configuration> preferred = {};  // keyed by group_identity()
};

}  // namespace kiln
