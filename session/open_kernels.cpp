#include "session/open_kernels.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/dim_atoms.hpp"
#include "ir/error.hpp"
#include "jit/open_forms.hpp"
#include "session/kernel_program.hpp"

namespace kiln {
namespace {

// The values of dims that the program has bound already.
dim_bindings bound_dims(const program& p) {
  dim_bindings result;
  for (const auto& [name, range] : p.symbols)
    if (range.min == range.max) result[name] = range.min;
  return result;
}

bool equal_at(const shape& kernel, const shape& used, const dim_bindings& sizes) {
  return kernel.type == used.type && std::ranges::equal(kernel.dims, used.dims, [&](const dim& a, const dim& b) {
           return a == b || a.substitute(sizes) == b;
         });
}

// Whether a dim depends on a size that the model computes in floats, which is a symbol in kernels.
bool has_computed_sizes(const shape& s) {
  bool found = false;
  for (const dim& d : s.dims)
    replace_atoms(d, [&](const dim_atom& atom) -> std::optional<dim> {
      found |= atom.is == dim_atom::kind::real;
      return std::nullopt;
    });
  return found;
}

// Whether instructions with this payload may have different symbolic shapes.
bool has_several_shapes(const instruction& i) {
  return i.op().get_if<code_object>()->format == code_format::amdgcnspirv ||
         std::ranges::any_of(i.outputs(), has_computed_sizes) ||
         std::ranges::any_of(i.inputs(), [](value v) { return has_computed_sizes(v.type()); });
}

}  // namespace

open_kernels::open_kernels(const program& portable, processor on, const std::set<std::string>& without)
    : portable_(portable) {
  for (const module& m : portable.modules())
    for (const instruction& i : m.instructions()) {
      const auto* object = i.op().get_if<code_object>();
      if (!object || without.contains(object->payload)) continue;
      if (has_several_shapes(i) ? find(i, {}) != nullptr : kernels_.contains(object->payload)) continue;
      if (missing_open_form(portable, i, on) == std::string())
        kernels_.emplace(object->payload, open_kernel{&i, object, {}, nullptr, {}});
    }
}

bool open_kernels::has_shapes_of(const open_kernel& kernel, const instruction& i, const dim_bindings& sizes) {
  const auto equal = [&](const shape& a, const shape& b) { return equal_at(a, b, sizes); };
  return std::ranges::equal(kernel.first->inputs(), i.inputs(),
                            [&](value a, value b) { return equal(a.type(), b.type()); }) &&
         std::ranges::equal(kernel.first->outputs(), i.outputs(), equal);
}

const open_kernels::open_kernel* open_kernels::find(const instruction& i, const dim_bindings& sizes) const {
  const auto [begin, end] = kernels_.equal_range(i.op().get_if<code_object>()->payload);
  if (begin != end && std::next(begin) == end && !has_several_shapes(*begin->second.first)) return &begin->second;
  const auto found = std::find_if(begin, end, [&](const auto& entry) { return has_shapes_of(entry.second, i, sizes); });
  return found == end ? nullptr : &found->second;
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
  const dim_bindings known = sizes ? *sizes : bound_dims(in);
  for (module& m : in.modules())
    for (instruction& i : m.instructions()) {
      const auto* object = i.op().get_if<code_object>();
      if (!object || object->format == code_format::native) continue;
      const open_kernel* found = find(i, known);
      if (!found || !found->bytes) continue;
      if (sizes && !serves(found->native, *sizes)) continue;
      in.add_kernel(found->hash, found->bytes);
      m.set_operation(&i, code_object::make(object->symbol, code_format::native, found->hash, target_, i.outputs()));
    }
}

}  // namespace kiln
