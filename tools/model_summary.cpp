#include "tools/model_summary.hpp"

#include <algorithm>
#include <set>

#include "ir/independent_rows.hpp"
#include "ir/ops/all.hpp"
#include "jit/open_forms.hpp"

namespace kiln::tools {
namespace {

bool has_open_dims(const instruction& i) {
  auto open = [](const shape& s) { return !s.is_static(); };
  return std::ranges::any_of(i.outputs(), open) ||
         std::ranges::any_of(i.inputs(), [&](value v) { return open(v.type()); });
}

std::set<std::string> symbols_of(const instruction& i) {
  std::set<std::string> result;
  auto add = [&](const shape& s) {
    for (const dim& d : s.dims) result.merge(d.symbols());
  };
  for (value v : i.inputs()) add(v.type());
  std::ranges::for_each(i.outputs(), add);
  return result;
}

open_kernel_summary summarize_open(const program& p, const instruction& i, const std::string& payload) {
  open_kernel_summary result;
  if (const auto rows = recorded_rows(p, payload)) {
    result.rows = rows->str();
    result.static_rows = symbols_of(i) == rows->symbols();
  }
  const auto missing = missing_open_form(p, i, processor::cpu);
  result.all_sizes = missing && missing->empty();
  result.missing = missing.value_or("");
  const auto gpu_missing = missing_open_form(p, i, processor::gpu);
  result.gpu_all_sizes = gpu_missing && gpu_missing->empty();
  result.gpu_missing = gpu_missing.value_or("");
  return result;
}

}  // namespace

std::map<std::string, std::size_t> model_summary::missing_forms() const {
  std::map<std::string, std::size_t> result;
  for (const auto& [payload, kernel] : open_kernels)
    if (!kernel.compiled_once()) ++result[kernel.missing.empty() ? "unknown" : kernel.missing];
  return result;
}

std::map<std::string, std::size_t> model_summary::gpu_missing_forms() const {
  std::map<std::string, std::size_t> result;
  for (const auto& [payload, kernel] : open_kernels)
    if (!kernel.gpu_all_sizes) ++result[kernel.gpu_missing.empty() ? "unknown" : kernel.gpu_missing];
  return result;
}

model_summary summarize(const program& p) {
  model_summary result;
  std::set<std::string> payloads;
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions()) {
      ++result.operators[std::string(i.op().name())];
      if (const auto* c = i.op().get_if<code_object>()) {
        ++result.code_objects;
        result.native += c->format == code_format::native;
        payloads.insert(c->payload);
        if (has_open_dims(i)) result.open_kernels.try_emplace(c->payload, summarize_open(p, i, c->payload));
      } else if (i.op().is<reshape>() || i.op().is<data_sizes>()) {
        ++result.aliases;
      } else if (!i.op().is<parameter>() && !i.op().is<constant>() && !i.op().is<if_else>() && !i.op().is<loop>()) {
        ++result.interpreted;
      }
    }
  result.kernels = payloads.size();
  return result;
}

}  // namespace kiln::tools
