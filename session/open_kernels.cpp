#include "session/open_kernels.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/error.hpp"
#include "session/kernel_program.hpp"

namespace kiln {
open_kernels::open_kernels(const program& portable, processor on, const std::set<std::string>& without)
    : portable_(portable) {
  for (const module& m : portable.modules())
    for (const instruction& i : m.instructions()) {
      const auto* object = i.op().get_if<code_object>();
      if (!object || object->format != code_format::mlir_bytecode || without.contains(object->payload)) continue;
      if (recorded_missing_form(portable, object->payload, on) == std::string())
        kernels_.try_emplace(object->payload, open_kernel{&i, object, {}, nullptr, {}});
    }
}

jit_report open_kernels::finalize(const jit_options& options, const std::function<void(const std::string&)>& warn) {
  if (finalized_ || kernels_.empty()) return {};
  target_ = options.target.name;
  jit_options open = options;
  open.open = true;
  std::vector<open_kernel*> all;
  for (auto& [payload, kernel] : kernels_) all.push_back(&kernel);
  try {
    jit_report report = compile(all, open);
    finalized_ = true;
    return report;
  } catch (const error& e) {
    if (e.kind() == error_kind::not_cached) throw;
  }
  // A kernel was refused, but the error does not say which one. Compile each kernel separately.
  jit_report report;
  for (open_kernel* kernel : all) {
    try {
      jit_report one = compile({kernel}, open);
      std::ranges::move(one.kernels, std::back_inserter(report.kernels));
      report.hits += one.hits, report.misses += one.misses, report.elapsed_ms += one.elapsed_ms;
    } catch (const error& e) {
      if (e.kind() == error_kind::not_cached) throw;
      warn(std::string(e.what()) + ": it is compiled for each set of sizes");
    }
  }
  finalized_ = true;
  return report;
}

jit_report open_kernels::compile(const std::vector<open_kernel*>& wanted, const jit_options& options) {
  kernel_program open(portable_);
  open.body.symbols = portable_.symbols;
  for (const open_kernel* kernel : wanted) {
    std::vector<shape> inputs;
    for (value v : kernel->first->inputs()) inputs.push_back(v.type());
    open.add(*kernel->object, inputs, kernel->first->outputs());
  }
  jit_report report;
  const program native = open.compile(options, &report);
  const auto outputs = native.main().outputs();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto* object = outputs[i].producer->op().get_if<code_object>();
    wanted[i]->hash = content_hash::from_hex(object->payload);
    wanted[i]->bytes = native.kernels().at(wanted[i]->hash);
    wanted[i]->native = deserialize_native_kernel(*wanted[i]->bytes);
    wanted[i]->native.object.clear();
  }
  return report;
}

void open_kernels::use_in(program& in, const dim_bindings* sizes) const {
  for (module& m : in.modules())
    for (instruction& i : m.instructions()) {
      const auto* object = i.op().get_if<code_object>();
      if (!object || object->format == code_format::native) continue;
      const auto found = kernels_.find(object->payload);
      if (found == kernels_.end() || !found->second.bytes) continue;
      if (sizes && !serves(found->second.native, *sizes)) continue;
      in.add_kernel(found->second.hash, found->second.bytes);
      m.set_operation(&i,
                      code_object::make(object->symbol, code_format::native, found->second.hash, target_, i.outputs()));
    }
}

}  // namespace kiln
