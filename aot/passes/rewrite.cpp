#include "aot/passes/rewrite.hpp"

#include <spdlog/spdlog.h>

#include "aot/passes/facts.hpp"
#include "ir/cancellation.hpp"

namespace kiln {

value rewriter::add(operation op, std::vector<value> inputs) {
  value made = module_.insert(root_, std::move(op), std::move(inputs));
  made.producer->set_origin(root_->origin());
  return made;
}

value rewriter::constant(literal data) {
  value made = module_.add_constant(std::move(data));
  made.producer->set_origin(root_->origin());
  return made;
}

value rewriter::splat(const shape& type, double number) { return broadcast_to(constant(literal::scalar(type.type, number)), type.dims); }

value rewriter::broadcast_to(value v, const std::vector<dim>& dims) { return v.type().dims == dims ? v : add(kiln::broadcast{dims}, {v}); }

value rewriter::reshape_to(value v, const std::vector<dim>& dims) { return v.type().dims == dims ? v : add(kiln::reshape{dims}, {v}); }

value rewriter::transpose_by(value v, const std::vector<std::int64_t>& permutation) {
  if (is_identity(permutation)) return v;
  if (moves_nothing(v.type().dims, permutation)) return reshape_to(v, permute(v.type().dims, permutation));
  return add(kiln::transpose{permutation}, {v});
}

value rewriter::convert_to(value v, element_type type) { return v.type().type == type ? v : add(convert{type}, {v}); }

bool apply_rules(module& m, std::span<const rule> rules) {
  constexpr int most_sweeps = 200;
  bool ever = false;
  std::string_view last;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool changed = false;
    for (instruction& at : m.instructions()) {
      check_stop();
      if (at.users().empty() && !m.has_uses(&at)) continue;
      for (const rule& r : rules) {
        match::captures found;
        value root = at.output();
        if (!r.pattern(root, found)) continue;
        rewriter write(m, &at);
        value made = r.make(write, root, found);
        if (!made || made == root) continue;
        m.replace(root, made);
        changed = true;
        last = r.name;
        break;
      }
    }
    m.erase_dead();
    if (!changed) return ever;
    ever = true;
  }
  // Every rule keeps the module's meaning, so it can be used as it is.
  spdlog::warn("rewrite rules do not come to rest in module '{}'; the last one was {}", m.name(), last);
  return true;
}

}  // namespace kiln
