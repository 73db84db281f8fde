#include "runtime/plan_filler.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/arena.hpp"
#include "runtime/early_reads.hpp"
#include "runtime/launch_check.hpp"

namespace kiln {
namespace {

bool fits_32_bits(std::int64_t value) { return value > -std::int64_t{1} << 31 && value < std::int64_t{1} << 31; }

std::size_t rounded(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

bool valid_sizes(const template_parts& parts, const std::vector<std::int64_t>& sizes) {
  auto negative_or_huge = [&](size_table::index i) {
    return i != size_table::none && (sizes[i] < 0 || static_cast<std::size_t>(sizes[i]) > most_scratch_bytes);
  };
  return std::ranges::all_of(parts.equal, [&](auto& e) { return sizes[e.first] == sizes[e.second]; }) &&
         std::ranges::all_of(parts.bounded, [&](size_table::index i) { return fits_32_bits(sizes[i]); }) &&
         std::ranges::none_of(parts.buffer_sizes, negative_or_huge);
}

std::optional<plan> plan_filler::fill() {
  if (!valid_sizes(parts_, sizes_)) return std::nullopt;
  reserve();
  plan_ = parts_.base;
  plan_.owners.push_back(parts_.prepared_owners);
  added_.resize(parts_.scopes.size());
  set_buffers();
  set_ports();
  if (!set_maps(parts_, sizes_, plan_) || !add_steps()) return std::nullopt;
  forbid_unsafe_early_reads(plan_);
  drop_unused_scratch();
  find_neighbours();
  place_zeroed();
  place_arena();
  report();
  parts_.usual = {plan_.buffers.size(), plan_.arguments.size(), plan_.block_parts.size()};
  return std::move(plan_);
}

// Row kernels append to these. Plans of other sizes need about as much.
void plan_filler::reserve() {
  plan_.buffers.reserve(parts_.usual.buffers);
  plan_.arguments.reserve(parts_.usual.arguments);
  plan_.written.reserve(parts_.usual.arguments);
  plan_.early.reserve(parts_.usual.arguments);
  plan_.block_parts.reserve(parts_.usual.block_parts);
}

void plan_filler::set_buffers() {
  for (std::size_t b = 0; b < parts_.buffer_sizes.size(); ++b)
    if (const auto size = parts_.buffer_sizes[b]; size != size_table::none) {
      plan_.buffers[b].bytes = static_cast<std::size_t>(sizes_[size]);
      if (room_) plan_.buffers[b].room = static_cast<std::size_t>((*room_)[size]);
    }
  std::size_t count = 0;
  for (const open_table& table : parts_.tables) count += table.sizes.size();
  if (count == 0) return;
  auto numbers = std::make_shared<std::vector<std::int64_t>>();
  numbers->reserve(count);
  for (const open_table& table : parts_.tables) {
    plan_.buffers[table.buffer].address = reinterpret_cast<const std::byte*>(numbers->data() + numbers->size());
    for (size_table::index i : table.sizes) numbers->push_back(sizes_[i]);
  }
  plan_.open_sizes = std::move(numbers);
}

void plan_filler::set_ports() {
  for (const open_port& open : parts_.ports) {
    const plan_buffer& buffer = plan_.buffers[open.buffer];
    auto& ports = buffer.place == buffer_place::input ? plan_.inputs : plan_.outputs;
    plan_port& port = ports[buffer.offset];
    port.bytes = buffer.bytes;
    port.dims.reserve(open.dims.size());
    for (size_table::index i : open.dims) port.dims.push_back(sizes_[i]);
    port.type.dims.assign(port.dims.begin(), port.dims.end());
  }
}

bool plan_filler::add_steps() {
  const std::int64_t most = parts_.target.info().host_memory ? INT64_MAX : most_groups;
  plan_.blocks.reserve(parts_.blocks.size());
  for (const template_block& block : parts_.blocks) {
    plan_block& made = plan_.blocks.emplace_back(plan_block{block.module, {}});
    made.steps.reserve(block.steps.size());
    auto& origins = origins_.emplace_back();
    for (std::size_t s = 0; s < block.steps.size(); ++s) {
      const template_step& step = block.steps[s];
      if (step.rows != size_table::none) {
        add_rows({parts_.row_uses[step.rows], step.rows, static_cast<std::int64_t>(s), step.instruction, made.steps});
        origins.resize(made.steps.size(), -1);
        continue;
      }
      if (does_nothing(parts_, step, sizes_)) continue;
      made.steps.push_back({step.what, step.instruction});
      origins.push_back(static_cast<std::int64_t>(s));
      if (step.late != size_table::none) {
        const auto& launch = std::get<launch_step>(step.what);
        parts_.prepare_late(step.late, std::span(plan_.arguments).subspan(launch.first_argument, launch.argument_count),
                            plan_);
      }
      if (step.size != size_table::none) std::get<check_step>(made.steps.back().what).size = sizes_[step.size];
      if (step.grid == size_table::none) continue;
      if (sizes_[step.grid] < 0 || sizes_[step.grid] > most) return false;
      std::get<launch_step>(made.steps.back().what).grid = sizes_[step.grid];
    }
  }
  return true;
}

void plan_filler::drop_unused_scratch() {
  if (room_) return;  // a series has the memory of its largest sizes
  std::vector<bool> used(plan_.buffers.size());
  for (const plan_block& block : plan_.blocks)
    for (const plan_step& step : block.steps)
      if (const auto* launch = std::get_if<launch_step>(&step.what))
        for (std::uint32_t a = 0; a < launch->argument_count; ++a)
          used[plan_.arguments[launch->first_argument + a]] = true;
  for (buffer_id b : parts_.scratch)
    if (!used[b]) plan_.buffers[b].bytes = 0;
}

// Zeroed buffers never share memory, not even with each other, because kernels may run concurrently.
void plan_filler::place_zeroed() {
  const std::size_t alignment = parts_.target.info().alignment;
  for (plan_buffer& b : plan_.buffers)
    if (b.place == buffer_place::zeroed) {
      b.offset = plan_.zeroed_bytes;
      plan_.zeroed_bytes += rounded(b.placed_bytes(), alignment);
    }
}

// Regions are packed from the inside out: the region of a body is one buffer of the enclosing module. Then all offsets
// are made absolute.
void plan_filler::place_arena() {
  const std::size_t alignment = parts_.target.info().alignment;
  const auto& scopes = parts_.scopes;
  std::vector<std::vector<template_request>> requests(scopes.size());
  std::vector<arena_layout> layouts(scopes.size());
  plan_report& r = plan_.report;
  parts_.packers.resize(scopes.size());
  for (std::size_t s = scopes.size(); s-- > 0;) {  // bodies follow their parents
    requests[s] = scopes[s].requests;
    requests[s].insert(requests[s].end(), added_[s].begin(), added_[s].end());
    std::vector<arena_request> wanted;
    wanted.reserve(requests[s].size());
    for (template_request& request : requests[s]) request = lifetime(s, request);
    for (const template_request& request : requests[s])
      wanted.push_back(request.last < request.first  // never used
                           ? arena_request{}
                           : arena_request{rounded(plan_.buffers[request.buffer].placed_bytes(), alignment),
                                           request.first, request.last});
    layouts[s] = parts_.packers[s].pack(wanted);
    r.arena_sum_bytes += layouts[s].sum;
    if (scopes[s].parent == SIZE_MAX) continue;
    plan_.buffers[scopes[s].region].bytes = layouts[s].bytes;
    r.arena_sum_bytes -= rounded(layouts[s].bytes, alignment);  // regions are not buffers of their own
  }
  std::vector<std::size_t> bases(scopes.size(), 0);
  for (std::size_t s = 0; s < scopes.size(); ++s) {
    if (scopes[s].parent != SIZE_MAX) bases[s] = plan_.buffers[scopes[s].region].offset;
    for (std::size_t i = 0; i < requests[s].size(); ++i)
      plan_.buffers[requests[s][i].buffer].offset = bases[s] + layouts[s].offsets[i];
  }
  r.arena_bytes = plan_.arena_bytes = layouts[0].bytes;
  r.arena_lower_bound = layouts[0].lower_bound;
}

void plan_filler::report() {
  plan_report& r = plan_.report;
  for (const plan_block& block : plan_.blocks) {
    std::size_t shared = 0, neighbours = 0;  // arguments of launches side by side, and how many of these follow
    for (const plan_step& step : block.steps) {
      std::size_t arguments = 0;
      if (const auto* launch = std::get_if<launch_step>(&step.what)) {
        ++r.launches;
        arguments = launch->argument_count * static_cast<std::size_t>(std::max<std::int64_t>(1, launch->blocks));
      } else if (const auto* call = std::get_if<call_step>(&step.what)) {
        ++r.calls;
        arguments = call->argument_count;
      } else if (std::holds_alternative<copy_step>(step.what)) {
        ++r.copies;
      }
      if (neighbours) shared += arguments, --neighbours;
      else shared = arguments, neighbours = step.together - 1;
      plan_.most_arguments = std::max(plan_.most_arguments, shared);
      plan_.most_together = std::max<std::size_t>(plan_.most_together, step.together);
    }
  }
  r.prepared_bytes = parts_.prepare.bytes();
  r.prepared_found = parts_.prepare.found();
  r.prepared_made = parts_.prepare.made();
}

}  // namespace kiln
