// Undoes kernel formation for tests: every code object becomes a copy of the fusion that its payload was made from.
#pragma once

#include <cstring>
#include <map>

#include "aot/kernels/formation.hpp"
#include "ir/ops/all.hpp"

namespace kiln::testing {

// Stores the text of the fusion in place of bytecode.
inline std::vector<std::byte> write_text(const module& fusion, std::string_view symbol) {
  std::string text = std::string(symbol) + "\n" + fusion.str();
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

inline program unformed(const program& p, const std::vector<formed_kernel>& kernels) {
  std::map<std::string, const module*> fusions;
  for (const formed_kernel& k : kernels) fusions[k.payload.hex()] = k.fusion.get();
  program result;
  std::map<const module*, module*> made;
  auto copy = [&](auto&& self, const module& from) -> module& {
    if (auto found = made.find(&from); found != made.end()) return *found->second;
    module& to = &from == &p.main() ? result.main() : result.add_module(from.name());
    made[&from] = &to;
    std::map<value, value> values;
    for (const instruction& i : from.instructions()) {
      auto source = [&](std::uint32_t k) { return value{const_cast<instruction*>(&i), k}; };
      std::vector<value> inputs;
      for (value v : i.inputs()) inputs.push_back(values.at(v));
      if (const auto* c = i.op().get_if<code_object>()) {
        auto outputs = to.inline_module(*fusions.at(c->payload), inputs);
        for (std::uint32_t k = 0; k < outputs.size(); ++k) values[source(k)] = outputs[k];
        continue;
      }
      std::vector<module*> bodies;
      for (const module* body : i.bodies()) bodies.push_back(&self(self, *body));
      const auto* parameter_op = i.op().get_if<parameter>();
      value v = parameter_op ? to.add_parameter(parameter_op->name_in_module, i.outputs()[0])
                             : to.add(i.op(), inputs, bodies);
      for (std::uint32_t k = 0; k < i.outputs().size(); ++k) values[source(k)] = {v.producer, k};
    }
    std::vector<value> outputs;
    for (value v : from.outputs()) outputs.push_back(values.at(v));
    to.set_outputs(std::move(outputs), from.output_names());
    return to;
  };
  copy(copy, p.main());
  return result;
}

}  // namespace kiln::testing
