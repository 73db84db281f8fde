#include "session/kernel_program.hpp"

#include <utility>

#include "jit/kernel_groups.hpp"

namespace kiln {

void kernel_program::add(const code_object& object, const std::vector<shape>& inputs, const std::vector<shape>& results,
                         kernel_configuration preferred_one) {
  const content_hash hash = content_hash::from_hex(object.payload);
  body.add_kernel(hash, portable.kernels().at(hash));
  module& m = body.main();
  std::vector<value> arguments;
  for (const shape& s : inputs) arguments.push_back(m.add_parameter("p" + std::to_string(m.parameters().size()), s));
  code_object op = object;
  op.dims.clear();
  for (const shape& s : results) op.dims.insert(op.dims.end(), s.dims.begin(), s.dims.end());
  if (!preferred_one.empty())
    preferred.insert_or_assign(group_identity(object.payload, inputs, results), std::move(preferred_one));
  outputs.push_back(m.add(std::move(op), std::move(arguments)));
}

program kernel_program::compile(const jit_options& options, jit_report* report) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) names.push_back("o" + std::to_string(i));
  body.main().set_outputs(outputs, std::move(names));
  jit_options chosen = options;
  chosen.preferred = preferred;
  return compile_bytecode(body, chosen, report);
}

}  // namespace kiln
