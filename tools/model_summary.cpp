#include "tools/model_summary.hpp"

#include "ir/ops/all.hpp"

namespace kiln::tools {

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
