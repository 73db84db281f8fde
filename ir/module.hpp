// A list of instructions in topological order with named parameters and named outputs. Owns its instructions.
// Not thread-safe; const use from many threads is.
#pragma once

#include <list>
#include <span>
#include <string>
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

  // Appends (or, with `before`, inserts) and infers the shapes. The first output is returned; others by
  // value{v.producer, i}.
  value add(operation op, std::vector<value> inputs, std::vector<module*> bodies = {});
  value insert(instruction* before, operation op, std::vector<value> inputs, std::vector<module*> bodies = {});
  value add_parameter(std::string name, shape type);
  value add_constant(literal data);  // at the front
  void set_outputs(std::vector<value> values, std::vector<std::string> names);

  std::vector<value> parameters() const;  // in order
  const std::vector<value>& outputs() const { return outputs_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  static const std::string& parameter_name(value parameter);
  // The literal of a constant, null for anything else.
  static const literal* constant(value v);

  // Every use of `old` (module outputs too) becomes `replacement`, which must have the same shape and precede the uses.
  void replace(value old, value replacement);
  void set_input(instruction* user, std::size_t index, value replacement);
  void set_operation(instruction* which, operation op);  // re-infers the outputs' shapes
  bool has_uses(const instruction* which) const;         // users or module outputs
  void erase(instruction* which);                        // must have no uses
  std::size_t erase_dead();                              // returns how many; parameters stay
  void sort();                                           // restores topological order after edits that broke it

  // Copies everything of `other` (except parameters, which become `arguments`) to the end of this module (or before
  // `before`); returns what its outputs became.
  std::vector<value> inline_module(const module& other, std::span<const value> arguments,
                                   instruction* before = nullptr);

  std::string str() const;  // the textual form, see ir/printer.cpp
  // Throws error{invalid_model} naming the instruction: topological order, use lists, arity, shapes as inferred.
  void validate() const;

 private:
  friend class program;
  using position = std::list<instruction>::iterator;
  instruction* emplace(position where, operation op, std::vector<value> inputs, std::vector<shape> outputs,
                       std::vector<module*> bodies);
  position find(instruction* which);
  std::string name_;
  std::list<instruction> instructions_;
  std::vector<value> outputs_;
  std::vector<std::string> output_names_;
};

}  // namespace kiln
