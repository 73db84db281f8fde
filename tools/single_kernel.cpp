#include "tools/single_kernel.hpp"

#include <fmt/format.h>

#include "runtime/executable.hpp"

namespace kiln::tools {

std::vector<literal> run_single_kernel(const program& source, const instruction& kernel,
                                       std::span<const literal> inputs, const jit_options& options, device& target) {
  program alone;
  std::vector<value> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    arguments.push_back(alone.main().add_parameter(fmt::format("p{}", i), inputs[i].type()));
  const auto& code = *kernel.op().get_if<code_object>();
  content_hash hash = content_hash::from_hex(code.payload);
  alone.add_kernel(hash, source.kernels().at(hash));
  value result = alone.main().add(kernel.op(), arguments);
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < result.producer->outputs().size(); ++i) {
    outputs.push_back({result.producer, i});
    names.push_back(fmt::format("o{}", i));
  }
  alone.main().set_outputs(outputs, names);
  return load(compile_bytecode(alone, options), target).evaluate(inputs);
}

}  // namespace kiln::tools
