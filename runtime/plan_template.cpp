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

plan make_plan(const program& source, device& target, const plan_options& options) {
  const auto parts = plan_builder(source, target, options, false).build();
  auto made = filled(*parts, {});
  if (!made) throw error(error_kind::internal, "a plan without open dimensions has open sizes");
  return std::move(*made);
}

}  // namespace kiln
