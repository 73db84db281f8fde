#include "tools/kernel_comparison.hpp"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "spirv/library/reference.hpp"
#include "tools/quantizer_steps.hpp"
#include "tools/single_kernel.hpp"

namespace kiln::tools {
namespace {

// Computes the expected outputs of a kernel in MLIR bytecode with the reference implementation. Numbers that it rounds
// are moved by `steps` before, if that is not 0; the result is empty if there are none.
std::vector<literal> fusion_reference(compiler_context& context, const program& source, const instruction& i,
                                      std::span<const literal> inputs, double steps = 0) {
  portable_kernel kernel =
      portable_kernel::parse(context, source.kernel(content_hash::from_hex(i.op().get_if<code_object>()->payload)));
  std::vector<shape> types;
  for (const literal& l : inputs) types.push_back(l.type());
  kernel.specialize(types, i.outputs());
  const auto fusion = to_fusion(kernel);
  if (steps != 0 && !move_rounded_numbers(*fusion, steps)) return {};
  return evaluate(*fusion, inputs);
}

}  // namespace

nlohmann::ordered_json describe(const std::string& name, const comparison& c) {
  return {{"name", name},
          {"ok", c.ok},
          {"max_error", c.max_error},
          {"rms_error", c.rms_error},
          {"relative_norm", c.relative_norm},
          {"tolerance", c.tolerance},
          {"reason", c.reason}};
}

nlohmann::ordered_json compare_kernels(const opened_model& model, exactness computed) {
  const program& bound = model.instance().bound();
  const jit_options compiling = model.resources().compiling();
  auto list = nlohmann::ordered_json::array();
  compiler_context context;
  auto run = [&](const instruction& i, std::span<const literal> inputs) {
    const auto& c = *i.op().get_if<code_object>();
    auto library = spirv::find_library_reference(bound, i);
    if (c.format != code_format::mlir_bytecode && !library) {  // no reference: what it gives is what its users get
      list.push_back({{"name", c.symbol},
                      {"ok", true},
                      {"reason", "a custom operator has no built-in reference"},
                      {"payload", c.payload},
                      {"origin", i.origin()}});
      return run_single_kernel(bound, i, inputs, compiling, model.resources().device());
    }
    auto expected = library ? library(inputs, i.outputs()) : fusion_reference(context, bound, i, inputs);
    auto got = run_single_kernel(bound, i, inputs, compiling, model.resources().device());
    const auto found = compare_with_steps(got, expected, computed, [&](double steps) {
      return library ? std::vector<literal>{} : fusion_reference(context, bound, i, inputs, steps);
    });
    for (std::size_t k = 0; k < got.size(); ++k) {
      auto row = describe(fmt::format("{} output {}", c.symbol, k), found[k]);
      row["payload"] = c.payload;
      row["origin"] = i.origin();
      list.push_back(row);
    }
    return expected;
  };
  evaluate(bound.main(), model.inputs(), run);
  return list;
}

}  // namespace kiln::tools
