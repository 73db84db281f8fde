// Fills a template in for one set of sizes. Internal to plan_template.cpp; implemented in plan_filler.cpp (sizes,
// steps, arena), side_by_side.cpp (launches at the same time) and filled_rows.cpp (row kernels). Used once, by one
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/row_blocks.hpp"
#include "runtime/template_parts.hpp"

namespace kiln {

// Whether the program can have these sizes with the steps of the template.
bool valid_sizes(const template_parts& parts, const std::vector<std::int64_t>& sizes);

// Whether a row kernel reads no rows and writes to the arena only (numbers of positions). In a plan_series it writes
// all rows that there is room for, so that it does not depend on the sizes.
bool only_writes_rows(const rows_use& use, const plan& of);

class plan_filler {
 public:
  // `sizes` are the values of parts.sizes. `room`, if not null, are those that the memory is laid out for; none that is
  // a number of bytes may be smaller than in `sizes`.
  plan_filler(template_parts& parts, const std::vector<std::int64_t>& sizes,
              const std::vector<std::int64_t>* room = nullptr)
      : parts_(parts), sizes_(sizes), room_(room) {}

  // Returns nullopt where plan_template::at() does.
  std::optional<plan> fill();

 private:
  void reserve();
  void set_buffers();
  void set_ports();
  bool add_steps();
  // Takes away the scratch memory of launches that are not in the plan because their grid is empty.
  void drop_unused_scratch();
  // Finds launches that run side by side on the host (side_by_side.cpp), and how long their buffers live.
  void find_neighbours();
  bool is_worth_a_thread(const launch_step& launch) const;
  bool independent(const launch_step& one, const launch_step& other) const;
  template_request lifetime(std::size_t block, template_request request) const;
  void place_zeroed();
  void place_arena();
  void report();

  // One use of a row kernel: its step in the template, and the list that gets its launches.
  struct rows_place {
    const rows_use& use;
    std::size_t number;  // of the use
    std::int64_t step;
    std::uint32_t instruction;
    std::vector<plan_step>& steps;
  };
  void add_rows(const rows_place& at);
  void add_blocks(const rows_place& at, const row_blocks& blocks, const std::vector<buffer_id>& inputs,
                  const std::vector<buffer_id>& outputs);
  void add_partial_block(const rows_place& at, row_blocks blocks);
  const rows_version& version_of(const rows_place& at, const row_blocks& blocks, const std::vector<buffer_id>& inputs);
  buffer_id add_buffer(plan_buffer b);
  // A buffer that lives during the step.
  buffer_id add_arena_buffer(const rows_place& at, std::size_t bytes);

  template_parts& parts_;
  const std::vector<std::int64_t>& sizes_;
  const std::vector<std::int64_t>* room_;
  plan plan_;
  // Requests for the buffers that row kernels add, per scope.
  std::vector<std::vector<template_request>> added_;
  // Per block and step of the plan: the step of the template, or -1 for a launch of a row kernel.
  std::vector<std::vector<std::int64_t>> origins_;
  // Per block: the first and the last step of the template that run side by side.
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> neighbours_;
  // Used again for each row kernel.
  std::vector<std::size_t> input_bytes_, output_bytes_;
  std::vector<row_blocks> covered_;
  std::vector<buffer_id> scratch_;
};

}  // namespace kiln
