#include "tools/model_summary.hpp"

#include <algorithm>

#include "ir/independent_rows.hpp"
#include "ir/ops/all.hpp"

namespace kiln::tools {
namespace {

bool has_open_dims(const instruction& i) {
  auto open = [](const shape& s) { return !s.is_static(); };
  return std::ranges::any_of(i.outputs(), open) ||
         std::ranges::any_of(i.inputs(), [&](value v) { return open(v.type()); });
}

}  // namespace

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
        if (has_open_dims(i)) {
          const auto rows = recorded_rows(p, c->payload);
          result.open_kernels.emplace(c->payload, rows ? rows->str() : "");
        }
      } else if (i.op().is<reshape>()) {
        ++result.aliases;
      } else if (!i.op().is<parameter>() && !i.op().is<constant>() && !i.op().is<if_else>() && !i.op().is<loop>()) {
        ++result.interpreted;
      }
    }
  result.kernels = payloads.size();
  return result;
}

}  // namespace kiln::tools
