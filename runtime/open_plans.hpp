// The plans of a program with open dims and native code objects: a template (plan_template.hpp) for each way in which
// the program's choices can be decided, made when first needed. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/dim_table.hpp"
#include "runtime/arena_pool.hpp"
#include "runtime/plan_template.hpp"
#include "runtime/spare_contexts.hpp"

namespace kiln {

class open_plans {
 public:
  // `target` and what `options` points to must outlive this object.
  open_plans(program native, device& target, const plan_options& options);

  // Makes streams for the contexts of the first plans, if these run on a GPU.
  void add_streams(std::size_t count);

  // Returns null if the sizes are not valid for the program, or if there is no template for them, or none that serves
  // them (plan_template::at).
  std::shared_ptr<const plan> at(const dim_bindings& sizes);

  // A plan for `sizes` that can go on to others, with memory for `room` (plan_series.hpp). Returns nullopt where at()
  // returns null, or if `room` leads to another template. This object must outlive the result.
  std::optional<plan_series> series(const dim_bindings& sizes, const dim_bindings& room);
  // Gives the plan of a series other sizes. Returns false, and leaves the plan as it is, if they need another plan.
  bool move(plan_series& to, const dim_bindings& sizes);

  const program& native() const { return native_; }
  // Why at() has no template: the message of the first error. "" if there was none.
  const std::string& problem() const { return problem_; }

 private:
  bool valid(const dim_bindings& sizes, const std::vector<std::int64_t>& values) const;
  std::optional<plan_template> make(const dim_bindings& sizes);
  // The template for valid sizes, or null.
  plan_template* template_for(const dim_bindings& sizes);

  program native_;
  device& device_;
  plan_options options_;
  std::shared_ptr<arena_pool> arenas_;      // of all plans on the host
  std::shared_ptr<spare_contexts> spares_;  // of all plans on a GPU, but for series
  dim_table dims_;
  std::vector<dim_table::index> conditions_;  // of the program's choices
  std::vector<std::pair<dim_table::index, dim_table::index>> guards_;
  // Keyed by the values of conditions_; nullopt if there can be none.
  std::map<std::vector<bool>, std::optional<plan_template>> ways_;
  std::string problem_;
};

}  // namespace kiln
