// The plans of a program for all values of its open dimensions. The steps, the kernels, the constants and the prepared
// weights do not depend on the sizes, so they are made once; a plan for one set of sizes is a copy in which bytes,
// grids, tables of sizes, blocks of rows and the arena's layout are filled in. That takes microseconds where
// make_plan() takes milliseconds.
//
// The code objects of the program must be native kernels that serve all sizes (ir/native_kernel.hpp, ir/row_kernel.hpp)
// or have static shapes. A reshape is an alias; it must give as many elements as it takes for all sizes that are asked
// for.
#pragma once

#include <memory>
#include <optional>

#include "runtime/plan.hpp"
#include "runtime/plan_series.hpp"

namespace kiln {

struct template_parts;

class plan_template {
 public:
  // Loads the kernels, transfers constants to the device and prepares weights. `target` and what `options` points to
  // must outlive this object; options.sizes is not used. Throws what make_plan() throws, except for open dimensions.
  plan_template(const program& source, device& target, const plan_options& options = {});
  ~plan_template();
  plan_template(plan_template&&) noexcept;
  plan_template& operator=(plan_template&&) = delete;

  // Returns nullopt if the program has another structure for these sizes (a tensor without elements), a kernel does not
  // serve them, or they are not valid for the program: bind the program to them and use make_plan(), which explains an
  // error. The plan lives independently of this object. One thread at a time.
  std::optional<plan> at(const dim_bindings& sizes);
  // A plan for `sizes` that can go on to others, with memory for `room`. Returns nullopt where at() does for either,
  // and if some tensor is larger in `sizes`. `arenas`: see plan::arenas. This object must outlive the result.
  std::optional<plan_series> series(const dim_bindings& sizes, const dim_bindings& room,
                                    std::shared_ptr<arena_pool> arenas = nullptr);
  bool made(const plan_series& s) const { return s.is_of(*parts_); }

 private:
  std::unique_ptr<template_parts> parts_;
};

}  // namespace kiln
