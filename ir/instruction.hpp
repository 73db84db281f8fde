// One node of a module: an operation applied to values. The module owns it at a fixed address. It is edited only
// through the module, which maintains the user lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/operation.hpp"

namespace kiln {

class module;
class instruction;

// Output number `index` of `producer`. Instructions consume values.
struct value {
  instruction* producer = nullptr;
  std::uint32_t index = 0;
  const shape& type() const;
  explicit operator bool() const { return producer != nullptr; }
  friend bool operator==(const value&, const value&) = default;
  friend auto operator<=>(const value&, const value&) = default;
};

class instruction {
 public:
  const operation& op() const { return op_; }
  const std::vector<value>& inputs() const { return inputs_; }
  const std::vector<shape>& outputs() const { return outputs_; }
  value output(std::uint32_t index = 0) { return {this, index}; }
  // Bodies of `if` (then, else) and `loop` (body); owned by the program. Bodies see only their own parameters.
  const std::vector<module*>& bodies() const { return bodies_; }
  // Each instruction that consumes an output, once per use. Module outputs are not included; see module::outputs().
  const std::vector<instruction*>& users() const { return users_; }
  // The node of the source model ("Conv_12 (/layer1/conv1)"), for messages. Saved in the file, but not part of the
  // identity.
  const std::string& origin() const { return origin_; }
  void set_origin(std::string origin) { origin_ = std::move(origin); }

 private:
  friend class module;
  operation op_;
  std::vector<value> inputs_;
  std::vector<shape> outputs_;
  std::vector<module*> bodies_;
  std::vector<instruction*> users_;
  std::uint32_t given_ = 0;  // how many outputs of its module are outputs of this instruction
  std::string origin_;
};

inline const shape& value::type() const { return producer->outputs()[index]; }

}  // namespace kiln
