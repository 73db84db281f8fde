// Builds the template of a program's plans. One recursive walk over the modules makes blocks, buffers and their
// lifetimes. Internal to plan_template.cpp; implemented in plan_builder.cpp (modules and buffers), plan_kernels.cpp
// (launches) and plan_control_flow.cpp (bodies). Used once, by one thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops/data_sizes.hpp"
#include "ir/ops/structure.hpp"
#include "runtime/launch_check.hpp"
#include "runtime/plan.hpp"
#include "runtime/template_parts.hpp"

namespace kiln {

class plan_builder {
 public:
  // `open`: tensors may have open dims. Otherwise the kernels for all sizes get options.sizes.
  plan_builder(const program& source, device& target, const plan_options& options, bool open)
      : source_(source),
        device_(target),
        options_(options),
        open_(open),
        parts_(std::make_unique<template_parts>(target, options)),
        plan_(parts_->base),
        constants_(parts_->constants) {}

  std::unique_ptr<template_parts> build();

 private:
  using value_map = std::map<value, buffer_id>;

  // The size of a buffer: a number of bytes, or an index of template_parts::sizes.
  struct buffer_size {
    std::size_t bytes = 0;
    size_table::index open = size_table::none;
    bool may_have_bytes() const { return bytes || open != size_table::none; }
  };

  // An instruction and its location in the plan.
  struct placed {
    const instruction& what;
    std::uint32_t block;
    std::size_t scope;
    const std::vector<buffer_id>&inputs, &outputs;
    std::vector<buffer_id> all() const;
  };

  // Throws error{usage} for an open dim, unless the plan is open.
  buffer_size size_of(const shape& type, const instruction& producer);
  buffer_size size_of(value v) { return size_of(v.type(), *v.producer); }
  buffer_id add_buffer(plan_buffer b, size_table::index size = size_table::none);
  buffer_id add_arena_buffer(std::size_t s, buffer_size size);
  void touch(std::size_t s, buffer_id id, std::int64_t step);
  plan_port port(const std::string& name, value v, buffer_id id);
  static std::vector<bounded_axis> bounded_axes(const module& main, value output);
  buffer_id constant_buffer(const literal& data);
  std::set<buffer_id> read_buffers() const;
  void forget_objects();
  void require_equal_sizes(value alias, value source);
  void add_size_checks(const instruction& i, const data_sizes& op, std::uint32_t block, std::size_t s,
                       const value_map& values);

  // `inputs` are the buffers of the parameters. The results must end up in the buffers `outputs`.
  std::uint32_t add_module(const module& m, const std::vector<buffer_id>& inputs, const std::vector<buffer_id>& outputs,
                           std::size_t parent);
  std::uint32_t instruction_index(const instruction& i);
  template_step& add_step(std::uint32_t block, std::size_t s, plan_work step, const instruction& i,
                          const std::vector<buffer_id>& touched);
  // Returns the number of the input whose memory the result `v` of a kernel can share, because the kernel copies that
  // input and then changes parts of the copy.
  std::optional<std::size_t> updated_in_place(value v);
  // The results that share the memory of `v`, which comes first, each made from the next one by an update in place. The
  // last one may be a parameter.
  std::vector<value> states_in_place(value v);
  // Returns true if all readers of `v`, which owns its bytes, come before `last` in its module, but `last` itself.
  bool read_before(value v, const instruction& last);
  // Lets the port of an output stay in the memory of an input that a run updates; false where it cannot.
  bool shared_with_input(buffer_id output, buffer_id with);
  void add_instruction(const instruction& i, std::uint32_t block, std::size_t s, value_map& values,
                       const value_map& destinations);

  void load_kernels();
  void load_kernel(const instruction& i, const code_object& object);
  // If the kernel at `index` is open, prepares the buffer with its table of sizes, and its grids and scratch sizes.
  void set_sizes(std::size_t index);
  bool called(const code_object& object) const;
  void add_call(const placed& at, const code_object& object);
  void add_kernel(const placed& at, const code_object& object);
  // Runs the `prepare` launches on the largest constants of the module, largest first: a constant and what is made of
  // it are in memory together for a moment, when there should be little else.
  void prepare_largest_first(const module& m);
  prepared_kernel prepare_needed(const placed& at, std::size_t index, const std::string& payload);
  void add_open_maps(const launch_step& step, size_table::index grid);
  void add_rows(const placed& at, const code_object& object, const row_kernel& rows);
  std::vector<buffer_id> scratch_buffers(const placed& at, const native_kernel& kernel,
                                         const prepared_kernel& prepared);

  void hold_region(std::size_t body_scope, std::size_t s, std::int64_t step);
  void add_if(const placed& at);
  void add_loop(const placed& at, const loop& op);

  const program& source_;
  device& device_;
  const plan_options& options_;
  const bool open_;
  std::unique_ptr<template_parts> parts_;
  plan& plan_;
  plan_constants& constants_;
  std::map<std::string, std::size_t> kernel_index_;  // payload to index in template_parts::kernels
  // Tables of open kernels, keyed by index of the kernel.
  std::map<std::size_t, buffer_id> size_tables_;
  std::vector<std::pair<std::size_t, std::size_t>> homes_;  // per buffer: scope and request, if any
  std::vector<plan_instruction> instructions_;
  std::map<const instruction*, std::uint32_t> instruction_index_;
  // For all modules that were begun: the order of their instructions, and the set of their outputs.
  std::map<const instruction*, std::size_t> order_;
  std::set<value> results_;
};

}  // namespace kiln
