#include "aot/passes/rewrite.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "aot/passes/facts.hpp"
#include "aot/rewrite_log.hpp"
#include "ir/cancellation.hpp"

namespace kiln {

value insert_at(module& m, place before, operation op, std::vector<value> inputs) {
  value made = m.add(std::move(op), std::move(inputs));
  auto& list = m.instructions();
  list.splice(before, list, std::prev(list.end()));
  return made;
}

value rewriter::add(operation op, std::vector<value> inputs) {
  value made = insert_at(module_, root_, std::move(op), std::move(inputs));
  made.producer->set_origin(root_->origin());
  return made;
}

value rewriter::constant(literal data) {
  value made = module_.add_constant(std::move(data));
  made.producer->set_origin(root_->origin());
  return made;
}

value rewriter::splat(const shape& type, double number) {
  return broadcast_to(constant(literal::scalar(type.type, number)), type.dims);
}

value rewriter::broadcast_to(value v, const std::vector<dim>& dims) {
  return v.type().dims == dims ? v : add(kiln::broadcast{dims}, {v});
}

value rewriter::reshape_to(value v, const std::vector<dim>& dims) {
  return v.type().dims == dims ? v : add(kiln::reshape{dims}, {v});
}

value rewriter::transpose_by(value v, const std::vector<std::int64_t>& permutation) {
  if (is_identity(permutation)) return v;
  if (moves_nothing(v.type().dims, permutation)) return reshape_to(v, permute(v.type().dims, permutation));
  return add(kiln::transpose{permutation}, {v});
}

value rewriter::convert_to(value v, element_type type) { return v.type().type == type ? v : add(convert{type}, {v}); }

namespace {

// The rules whose pattern can match an operation with a given name, in order.
class rule_index {
 public:
  explicit rule_index(std::span<const rule> rules) : rules_(rules) {}

  const std::vector<const rule*>& of(std::string_view operation) {
    auto found = by_operation_.find(operation);
    if (found != by_operation_.end()) return found->second;
    std::vector<const rule*>& list = by_operation_[std::string(operation)];
    for (const rule& r : rules_) {
      const auto& operations = r.pattern.operations();
      if (operations.empty() || std::ranges::find(operations, operation) != operations.end()) list.push_back(&r);
    }
    return list;
  }

 private:
  std::span<const rule> rules_;
  std::map<std::string, std::vector<const rule*>, std::less<>> by_operation_;
};

}  // namespace

bool apply_rules(module& m, std::span<const rule> rules, rewrite_log* log, std::string_view pass) {
  constexpr int most_sweeps = 200;
  bool ever = false;
  std::string_view last;
  rule_index index(rules);
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool changed = false;
    const std::size_t before = m.instructions().size();
    for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
      check_stop();
      instruction& at = *here;
      if (at.users().empty() && !m.has_uses(&at)) continue;
      for (const rule* each : index.of(at.op().name())) {
        const rule& r = *each;
        match::captures found;
        value root = at.output();
        if (!r.pattern(root, found)) continue;
        rewriter write(m, here);
        value made = r.make(write, root, found);
        if (!made || made == root) continue;
        m.replace(root, made);
        if (log) log->fired(pass, r.name, at.origin());
        changed = true;
        last = r.name;
        break;
      }
    }
    // A rule that gives up may leave instructions behind.
    if (changed || m.instructions().size() != before) m.erase_dead();
    if (!changed) return ever;
    ever = true;
  }
  // Every rule preserves the module's semantics, so the module is valid as it is.
  spdlog::warn("rewrite rules did not reach a fixed point in module '{}'; the last rule was {}", m.name(), last);
  return true;
}

}  // namespace kiln
