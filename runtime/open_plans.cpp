#include "runtime/open_plans.hpp"

#include <algorithm>

#include "ir/copy_modules.hpp"
#include "ir/error.hpp"
#include "ir/ops/choice.hpp"

namespace kiln {

open_plans::open_plans(program native, device& target, const plan_options& options)
    : native_(std::move(native)), device_(target), options_(options) {
  if (target.info().host_memory) arenas_ = std::make_shared<arena_pool>(target);
  else spares_ = std::make_shared<spare_contexts>();
  for (const module& m : native_.modules())
    for (const instruction& i : m.instructions())
      if (const auto* op = i.op().get_if<choice>()) conditions_.push_back(dims_.add(op->condition.at(0)));
  for (const dim_guard& g : native_.guards) guards_.emplace_back(dims_.add(g.a), dims_.add(g.b));
}

void open_plans::add_streams(std::size_t count) {
  if (spares_) spares_->add_streams(count, device_);
}

bool open_plans::valid(const dim_bindings& sizes, const std::vector<std::int64_t>& values) const {
  if (sizes.size() != native_.symbols.size()) return false;
  for (const auto& [name, range] : native_.symbols) {
    const auto found = sizes.find(name);
    if (found == sizes.end() || found->second < range.min || found->second > range.max) return false;
  }
  return std::ranges::all_of(guards_, [&](const auto& g) { return values[g.first] == values[g.second]; });
}

std::optional<plan_template> open_plans::make(const dim_bindings& sizes) {
  try {
    return plan_template(decide_choices(native_, sizes), device_, options_);
  } catch (const error& e) {
    if (problem_.empty()) problem_ = e.what();
    return std::nullopt;
  }
}

plan_template* open_plans::template_for(const dim_bindings& sizes) {
  const auto values = dims_.evaluate(sizes);
  if (!values || !valid(sizes, *values)) return nullptr;
  std::vector<bool> decisions;
  for (dim_table::index condition : conditions_) decisions.push_back((*values)[condition] != 0);
  auto found = ways_.find(decisions);
  if (found == ways_.end()) found = ways_.emplace(std::move(decisions), make(sizes)).first;
  return found->second ? &*found->second : nullptr;
}

std::shared_ptr<const plan> open_plans::at(const dim_bindings& sizes) {
  plan_template* from = template_for(sizes);
  auto made = from ? from->at(sizes) : std::nullopt;
  if (!made) return nullptr;
  made->arenas = arenas_;
  made->spares = spares_;
  return std::make_shared<const plan>(std::move(*made));
}

std::optional<plan_series> open_plans::series(const dim_bindings& sizes, const dim_bindings& room) {
  plan_template* from = template_for(sizes);
  if (!from || template_for(room) != from) return std::nullopt;
  return from->series(sizes, room, arenas_);
}

bool open_plans::move(plan_series& to, const dim_bindings& sizes) {
  plan_template* from = template_for(sizes);
  return from && from->made(to) && to.move_to(sizes);
}

}  // namespace kiln
