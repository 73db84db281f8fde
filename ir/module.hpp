// A list of instructions in topological order, with named parameters and named outputs. Owns its instructions. Not
// thread-safe, but concurrent const access is.
#pragma once

#include <list>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/instruction.hpp"

namespace kiln {

class module {
 public:
  explicit module(std::string name) : name_(std::move(name)) {}
  module(const module&) = delete;
  module& operator=(const module&) = delete;

  const std::string& name() const { return name_; }
  const std::list<instruction>& instructions() const { return instructions_; }
  std::list<instruction>& instructions() { return instructions_; }

  // Appends an instruction (or inserts it before `before`) and infers its output shapes. Returns the first output; the
  // others are value{v.producer, i}.
  value add(operation op, std::vector<value> inputs, std::vector<module*> bodies = {});
  value insert(instruction* before, operation op, std::vector<value> inputs, std::vector<module*> bodies = {});
  value add_parameter(std::string name, shape type);
  value add_constant(literal data);  // inserted at the front
  void set_outputs(std::vector<value> values, std::vector<std::string> names);

  std::vector<value> parameters() const;  // in order of declaration
  const std::vector<value>& outputs() const { return outputs_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  static const std::string& parameter_name(value parameter);
  // The literal if `v` is a constant, otherwise null.
  static const literal* constant(value v);

  // Replaces every use of `old`, including module outputs, except the uses by replacement's own producer. `replacement`
  // must have the same shape and precede the uses.
  void replace(value old, value replacement);
  void set_input(instruction* user, std::size_t index, value replacement);
  void set_operation(instruction* which, operation op);  // re-infers the outputs' shapes
  static bool has_uses(const instruction* which);        // users or outputs of its module
  void erase(instruction* which);                        // throws error{internal} if it has uses
  std::size_t erase_dead();                              // returns the number of erased instructions; keeps parameters
  void sort();                                           // restores topological order after edits

  // Copies the instructions of `other` to the end of this module or before `before`, with `arguments` in place of the
  // parameters. Returns the values that correspond to the outputs of `other`.
  std::vector<value> inline_module(const module& other, std::span<const value> arguments,
                                   instruction* before = nullptr);

  std::string str() const;  // the textual form; see ir/printer.cpp
  // Checks topological order, user lists, operand counts and inferred shapes. Throws error{invalid_model} naming the
  // instruction.
  void validate() const;

 private:
  friend class program;
  using position = std::list<instruction>::iterator;
  instruction* emplace(position where, operation op, std::vector<value> inputs, std::vector<shape> outputs,
                       std::vector<module*> bodies);
  position find(instruction* which);
  std::string name_;
  std::list<instruction> instructions_;
  std::unordered_map<const instruction*, position> positions_;  // of each instruction in instructions_
  std::vector<value> outputs_;
  std::vector<std::string> output_names_;
};

}  // namespace kiln
