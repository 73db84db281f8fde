#include "session/general_program.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/empty_results.hpp"
#include "session/kernel_program.hpp"

namespace kiln {
namespace {

bool is_static(const instruction& i) {
  return !gives_no_elements(i) && std::ranges::all_of(i.outputs(), &shape::is_static) &&
         std::ranges::all_of(i.inputs(), [](value v) { return v.type().is_static(); });
}

void compile_static_kernels(program& p, const jit_options& options, jit_report* report) {
  kernel_program rest(p);
  std::vector<std::pair<module*, instruction*>> wanted;
  for (module& m : p.modules())
    for (instruction& i : m.instructions()) {
      const auto* object = i.op().get_if<code_object>();
      if (!object || object->format == code_format::native || !is_static(i)) continue;
      std::vector<shape> inputs;
      for (value v : i.inputs()) inputs.push_back(v.type());
      rest.add(*object, inputs, i.outputs());
      wanted.emplace_back(&m, &i);
    }
  if (wanted.empty()) return;
  const program native = rest.compile(options, report);
  const auto made = native.main().outputs();
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const auto* object = made[k].producer->op().get_if<code_object>();
    const content_hash hash = content_hash::from_hex(object->payload);
    p.add_kernel(hash, native.kernels().at(hash));
    const auto& [m, i] = wanted[k];
    m->set_operation(i, code_object::make(object->symbol, code_format::native, hash, object->target, i->outputs()));
  }
}

// Kernels of which some dims are exact and others open. Row kernels of the host need no such form.
void compile_partly_open_kernels(const program& bound, program& to, processor on, const jit_options& options,
                                 jit_report* report) {
  if (on != processor::gpu) return;
  std::set<std::string> exact;
  for (const module& m : bound.modules())
    for (const instruction& i : m.instructions())
      if (const auto* object = i.op().get_if<code_object>(); object && is_static(i)) exact.insert(object->payload);
  open_kernels partly(bound, on, exact);
  // A kernel that has no such form keeps the one for all sizes.
  jit_report own = partly.finalize(options, [](const std::string&) {});
  partly.use_in(to, nullptr);
  if (!report) return;
  std::ranges::move(own.kernels, std::back_inserter(report->kernels));
  report->hits += own.hits, report->misses += own.misses, report->elapsed_ms += own.elapsed_ms;
}

}  // namespace

program general_program(const program& portable, const ranged_kernels& kernels, const jit_options& options,
                        jit_report* report, const dim_bindings& exact) {
  const std::optional<program> bound = exact.empty() ? std::nullopt : std::optional(portable.bind(exact));
  program result = bound ? bound->clone() : portable.clone();
  // Tables of sizes name all dims.
  result.symbols = portable.symbols;
  result.guards = portable.guards;
  for (const auto& [name, value] : exact) result.symbols[name] = {value, value, {}};
  compile_static_kernels(result, options, report);
  if (bound) compile_partly_open_kernels(*bound, result, kernels.on(), options, report);
  kernels.use_in(result);
  result.erase_unused_kernels();
  return result;
}

}  // namespace kiln
