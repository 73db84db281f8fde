#include "runtime/plan_template.hpp"

#include "ir/error.hpp"
#include "runtime/plan_builder.hpp"
#include "runtime/plan_filler.hpp"

namespace kiln {
namespace {

std::optional<plan> filled(template_parts& parts, const dim_bindings& sizes) {
  const auto values = parts.sizes.evaluate(sizes);
  return values ? plan_filler(parts, *values).fill() : std::nullopt;
}

}  // namespace

plan_template::plan_template(const program& source, device& target, const plan_options& options)
    : parts_(plan_builder(source, target, options, true).build()) {}

plan_template::~plan_template() = default;
plan_template::plan_template(plan_template&&) noexcept = default;

std::optional<plan> plan_template::at(const dim_bindings& sizes) { return filled(*parts_, sizes); }

std::optional<plan_series> plan_template::series(const dim_bindings& sizes, const dim_bindings& room,
                                                 std::shared_ptr<arena_pool> arenas) {
  auto values = parts_->sizes.evaluate(sizes), most = parts_->sizes.evaluate(room);
  if (!values || !most || !valid_sizes(*parts_, *most) || !within_room(*parts_, *values, *most)) return std::nullopt;
  auto made = plan_filler(*parts_, *values, &*most).fill();
  if (!made) return std::nullopt;
  made->arenas = std::move(arenas);
  return plan_series(*parts_, std::move(*made), std::move(*values), std::move(*most));
}

plan make_plan(const program& source, device& target, const plan_options& options) {
  const auto parts = plan_builder(source, target, options, false).build();
  auto made = filled(*parts, {});
  if (!made) throw error(error_kind::internal, "a plan without open dimensions has open sizes");
  return std::move(*made);
}

}  // namespace kiln
