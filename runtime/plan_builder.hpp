// Builds a plan from a program. One recursive walk over the modules makes blocks, buffers and their lifetimes. Arena
// regions are packed from the inside out: the region of a body is one buffer of the enclosing module. Then all offsets
// are made absolute. Internal to make_plan; implemented in plan_builder.cpp (modules and buffers), plan_kernels.cpp
// (launches) and plan_control_flow.cpp (bodies). Used once, by one thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops/structure.hpp"
#include "runtime/arena.hpp"
#include "runtime/launch_check.hpp"
#include "runtime/plan.hpp"
#include "runtime/plan_constants.hpp"
#include "runtime/prepare.hpp"
#include "runtime/row_blocks.hpp"

namespace kiln {

class plan_builder {
 public:
  plan_builder(const program& source, device& target, const plan_options& options)
      : source_(source),
        device_(target),
        options_(options),
        constants_(plan_, target, options.hashes),
        prepare_(target, options.store) {}

  plan build();

 private:
  using value_map = std::map<value, buffer_id>;

  // The arena buffers of one module, with lifetimes in steps of its block.
  struct scope {
    std::vector<arena_request> requests;
    std::size_t parent = SIZE_MAX, parent_request = 0;  // the request in the enclosing scope that holds this region
    arena_layout layout;
  };

  // An instruction and its location in the plan.
  struct placed {
    const instruction& what;
    std::uint32_t block;
    std::size_t scope;
    const std::vector<buffer_id>&inputs, &outputs;
    std::vector<buffer_id> all() const;
  };

  buffer_id add_buffer(plan_buffer b);
  buffer_id add_arena_buffer(std::size_t s, std::size_t bytes);
  buffer_id add_zeroed_buffer(std::size_t bytes);
  void touch(std::size_t s, buffer_id id, std::int64_t step);
  static plan_port port(const std::string& name, const shape& type, buffer_id id);
  static std::vector<bounded_axis> bounded_axes(const module& main, value output);
  buffer_id constant_buffer(const literal& data);

  // `inputs` are the buffers of the parameters. The results must end up in the buffers `outputs`.
  std::uint32_t add_module(const module& m, const std::vector<buffer_id>& inputs, const std::vector<buffer_id>& outputs,
                           std::size_t parent);
  static arena_layout pack(scope& s);
  std::uint32_t instruction_index(const instruction& i);
  void add_step(std::uint32_t block, std::size_t s, plan_work step, const instruction& i,
                const std::vector<buffer_id>& touched);
  void add_instruction(const instruction& i, std::uint32_t block, std::size_t s, value_map& values,
                       const value_map& destinations);

  void load_kernels();
  // If the kernel at `index` is open, sets its grids and scratch sizes and creates a buffer with its table of sizes.
  void set_sizes(std::size_t index);
  bool called(const code_object& object) const;
  void add_call(const placed& at, const code_object& object);
  void add_kernel(const placed& at, const code_object& object);
  // A kernel in the library and the blocks of rows that it computes; null for whole tensors.
  struct used_kernel {
    // Index in kernels_.
    std::size_t index;
    std::string payload;
    const row_kernel* rows = nullptr;
    row_blocks blocks = {};
  };
  void add_launches(const placed& at, const used_kernel& used);
  void add_partial_block(const placed& at, used_kernel used);
  std::vector<buffer_id> scratch_buffers(const placed& at, const used_kernel& used, const row_launches& blocked,
                                         const prepared_kernel& prepared);

  void hold_region(std::size_t body_scope, std::size_t s, std::int64_t step);
  void add_if(const placed& at);
  void add_loop(const placed& at, const loop& op);

  void place_arena();
  void report();

  const program& source_;
  device& device_;
  const plan_options& options_;
  plan plan_;
  plan_constants constants_;
  preparer prepare_;
  // The versions of a row kernel are consecutive.
  std::vector<native_kernel> kernels_;
  std::map<std::string, std::size_t> kernel_index_;  // payload to index in kernels_
  // Keyed by payload; their versions are in kernels_.
  std::map<std::string, row_kernel> row_kernels_;
  // Tables of open kernels, keyed by index in kernels_.
  std::map<std::size_t, buffer_id> size_tables_;
  std::vector<scope> scopes_;
  std::vector<std::pair<std::size_t, std::size_t>> homes_;  // per buffer: scope and request, if any
  std::map<const instruction*, std::uint32_t> instruction_index_;
};

// Throws error{usage} if the shape is symbolic.
std::size_t static_bytes_of(value v);

}  // namespace kiln
