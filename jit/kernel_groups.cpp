#include "jit/kernel_groups.hpp"

#include <fmt/format.h>

#include "ir/empty_results.hpp"
#include "ir/error.hpp"
#include "jit/cache/kernel_key.hpp"

namespace kiln {

content_hash group_identity(const std::string& payload, const std::vector<shape>& inputs,
                            const std::vector<shape>& outputs) {
  kernel_key identity;
  identity.payload = payload;
  identity.inputs = inputs;
  identity.outputs = outputs;
  return identity.hash();
}

kernel_groups group_code_objects(const program& bound, bool open) {
  kernel_groups result;
  std::map<content_hash, std::size_t> known;
  for (const module& m : bound.modules())
    for (const instruction& i : m.instructions()) {
      const auto* c = i.op().get_if<code_object>();
      if (!c || c->format == code_format::native || gives_no_elements(i)) continue;
      kernel_group g{*c, &i, {}, i.outputs(), 0};
      for (value v : i.inputs()) g.inputs.push_back(v.type());
      for (const shape& s : g.inputs)
        if (!open && !s.is_static())
          throw error(
              error_kind::usage,
              fmt::format("code object '{}' has an operand of type {}: bind every open dimension to a value first",
                          c->symbol, s.str()));
      auto [found, fresh] = known.try_emplace(group_identity(c->payload, g.inputs, g.outputs), result.list.size());
      if (fresh) result.list.push_back(std::move(g));
      ++result.list[found->second].occurrences;
      result.of[&i] = found->second;
    }
  return result;
}

}  // namespace kiln
