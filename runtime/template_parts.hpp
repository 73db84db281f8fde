// The parts of a plan_template: a plan whose sizes are missing, and the places where they belong. plan_builder makes
// them, plan_filler fills them in. Internal to these.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/row_kernel.hpp"
#include "runtime/arena.hpp"
#include "runtime/plan.hpp"
#include "runtime/plan_constants.hpp"
#include "runtime/prepare.hpp"
#include "runtime/row_blocks.hpp"
#include "runtime/size_table.hpp"

namespace kiln {

// A step of a block. Lifetimes of buffers are counted in these.
struct template_step {
  plan_work what;
  std::uint32_t instruction = 0;
  size_table::index grid = size_table::none;  // of a launch of an open kernel
  size_table::index size = size_table::none;  // of a check_step
  // Index in template_parts::late if the launch may read buffers of it; or none.
  std::uint32_t late = size_table::none;
  // Index of a use of a row kernel, whose launches and copies replace `what`; or none.
  std::uint32_t rows = size_table::none;
};

struct template_block {
  std::string module;
  std::vector<template_step> steps;
};

// A buffer in the arena of one module, live from step `first` through step `last` of its block.
struct template_request {
  buffer_id buffer = 0;
  std::int64_t first = INT64_MAX, last = -1;
};

// The arena buffers of one module. The region of a body is one buffer of the enclosing module.
struct template_scope {
  std::vector<template_request> requests;
  std::size_t parent = SIZE_MAX;
  buffer_id region = 0;
};

// An instruction whose code object is a row kernel.
struct rows_use {
  std::string what;        // for messages: describe_instruction()
  std::size_t kernel = 0;  // index of the first version in template_parts::kernels
  std::string payload;
  const row_kernel* rows = nullptr;
  std::vector<buffer_id> inputs, outputs;
  std::size_t scope = 0;
};

// One version of a use of a row kernel, ready to be launched for any number of blocks.
struct rows_version {
  prepared_kernel prepared;
  row_launches blocked;
  std::vector<kernel_handle> functions;  // per launch
};

// A kernel with buffers that are prepared when the first plan launches something that reads them: kernels for all sizes
// may have algorithms for different sizes, each of which packs the weights in its own way.
struct late_kernel {
  std::size_t kernel = 0;  // index in template_parts::kernels
  std::string payload;
  std::vector<buffer_id> inputs, scratch;
  std::vector<bool> missing;  // per scratch buffer
};

// An input or output of the program with open dims. Its buffer says which one.
struct open_port {
  buffer_id buffer = 0;
  std::vector<size_table::index> dims;
};

// The table of sizes of an open kernel, as a buffer.
struct open_table {
  buffer_id buffer = 0;
  std::vector<size_table::index> sizes;
};

// A tensor map of an open kernel, whose sizes are missing in the plan.
struct open_map {
  std::uint32_t map = 0;                                                // index in plan::tensor_maps
  size_table::index outer = size_table::none, rows = size_table::none;  // tensor_map::open_outer, open_rows
  size_table::index grid = size_table::none;                            // of its launch, if that is open
};

struct template_parts {
  template_parts(device& on, const plan_options& options)
      : target(on), constants(base, on, options.hashes), prepare(on, options.store) {}
  template_parts(const template_parts&) = delete;

  device& target;
  size_table sizes;
  plan base;  // without blocks; sizes that are in `sizes` are 0
  std::vector<template_block> blocks;
  std::vector<template_scope> scopes;
  std::vector<arena_packer> packers;            // per scope, of the last plans
  std::vector<size_table::index> buffer_sizes;  // per buffer of `base`, or none
  std::vector<buffer_id> scratch;               // of launches, in the arena
  std::vector<open_port> ports;
  std::vector<open_table> tables;
  std::vector<open_map> maps;
  std::vector<rows_use> row_uses;
  std::vector<late_kernel> late;
  // Sizes that must be equal, because a reshape is an alias.
  std::vector<std::pair<size_table::index, size_table::index>> equal;
  // Sizes that must fit into 32 bits (native_kernel::bounded_sizes).
  std::vector<size_table::index> bounded;

  // The versions of a row kernel are consecutive.
  std::vector<native_kernel> kernels;
  // Keyed by payload; their versions are in `kernels`.
  std::map<std::string, row_kernel> row_kernels;
  plan_constants constants;
  preparer prepare;
  // Per use of a row kernel, its versions; null until they are first needed, because most sizes need only some.
  std::vector<std::vector<std::unique_ptr<const rows_version>>> row_versions;
  // Owns what is prepared for row_versions, for this template and its plans.
  std::shared_ptr<std::vector<std::shared_ptr<const void>>> prepared_owners =
      std::make_shared<std::vector<std::shared_ptr<const void>>>();

  // The entries of the last plan that was filled in.
  struct counts {
    std::size_t buffers = 0, arguments = 0, block_parts = 0;
  } usual;

  // Runs the prepare launches of a kernel whose inputs are constants. `rows`: null for a kernel on whole tensors.
  // `needed`: prepare_request::needed.
  prepared_kernel prepared(std::size_t kernel, const std::string& payload, const std::vector<buffer_id>& inputs,
                           const row_kernel* rows, std::function<bool(std::size_t launch)> needed = {});
  // Prepares those buffers of late[number] that a launch with these arguments reads, for this template's plans.
  void prepare_late(std::uint32_t number, std::span<const buffer_id> arguments, plan& filled);
};

// The buffers of a kernel's launches.
struct launch_buffers {
  const std::vector<buffer_id>&inputs, &outputs, &scratch;
  buffer_id table = 0;  // of open kernels
};

// Returns true for a launch with an empty grid and for a copy of nothing, which plans for these `sizes` leave out.
bool does_nothing(const template_parts& parts, const template_step& step, const std::vector<std::int64_t>& sizes);

// Puts the values `sizes` of parts.sizes into the tensor maps of `to`, a plan of the template. Returns false, and
// changes nothing, if a map is impossible or larger than its buffer. Maps of launches with empty grids stay as they
// are.
bool set_maps(const template_parts& parts, const std::vector<std::int64_t>& sizes, plan& to);

// Appends the arguments and tensor maps of a launch to the tables of `to`.
launch_step append_launch(plan& to, const launch& what, kernel_handle function, const launch_buffers& buffers);

}  // namespace kiln
