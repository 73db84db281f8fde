#include "runtime/plan_pointers.hpp"

namespace kiln {
namespace {

alignas(64) std::byte nothing_at_all[64];

}  // namespace

void* plan_pointers::nothing() { return nothing_at_all; }

void plan_tensor_map::fill(tensor_map& to) const {
  to = *form;
  if (outer) to.dims.back() = outer;
  if (rows) to.box[1] = rows;
}

plan_pointers::plan_pointers(const plan& of, device& target, std::byte* arena, std::byte* zeroed)
    : plan_(&of),
      device_(&target),
      host_(target.info().host_memory),
      arena_(arena),
      table_(of.buffers.size(), nothing_at_all),
      values_(of.most_arguments),
      requests_(of.most_together > 1 ? of.most_together : 0),
      counters_(of.counters) {
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const plan_buffer& b = of.buffers[i];
    if (b.bytes == 0) continue;
    if (b.place == buffer_place::arena && arena) table_[i] = arena + b.offset;  // else move_arena() will
    if (b.place == buffer_place::zeroed) table_[i] = zeroed + b.offset;
    if (b.place == buffer_place::fixed) table_[i] = const_cast<std::byte*>(b.address);
  }
  if (host_) return;
  // A GPU launch reads its pointers directly from table_, its tensor maps from maps_, and its sizes from their buffer.
  for (buffer_id id : of.arguments) arguments_.push_back(of.buffers[id].by_value ? table_[id] : &table_[id]);
  maps_.resize(of.tensor_maps.size());
  mapped_.resize(of.tensor_maps.size());
  for (std::size_t m = 0; m < maps_.size(); ++m) arguments_[of.tensor_maps[m].argument] = &maps_[m];
}

void plan_pointers::move_arena(std::byte* arena) {
  if (arena == arena_) return;
  arena_ = arena;
  for (std::size_t i = 0; i < table_.size(); ++i)
    if (const plan_buffer& b = plan_->buffers[i]; b.place == buffer_place::arena && b.bytes)
      table_[i] = arena + b.offset;
}

launch_request plan_pointers::launch(const launch_step& step) {
  if (step.blocks) return launch_blocks(step);
  if (host_) {
    for (std::uint32_t i = 0; i < step.argument_count; ++i)
      values_[i] = table_[plan_->arguments[step.first_argument + i]];
    return {step.kernel,
            step.grid,
            step.grid_y,
            step.grid_z,
            step.block,
            step.lds_bytes,
            {values_.data(), step.argument_count}};
  }
  for (std::uint32_t m = step.first_map; m < step.first_map + step.map_count; ++m) {
    const plan_tensor_map& what = plan_->tensor_maps[m];
    void* base = table_[plan_->arguments[what.argument]];
    if (mapped_[m].base == base && mapped_[m].revision == what.revision) continue;
    what.fill(filled_);
    device_->encode(filled_, base, &maps_[m]);
    mapped_[m] = {base, what.revision};
  }
  return {step.kernel, step.grid,      step.grid_y, step.grid_z,
          step.block,  step.lds_bytes, {},          {arguments_.data() + step.first_argument, step.argument_count},
          nullptr,     step.waits};
}

std::span<const launch_request> plan_pointers::launches(std::span<const plan_step> steps) {
  void** next = values_.data();
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const launch_step& step = std::get<launch_step>(steps[s].what);
    requests_[s] = {.kernel = step.kernel, .grid = step.grid, .buffers = {next, step.argument_count}};
    for (std::uint32_t i = 0; i < step.argument_count; ++i) *next++ = table_[plan_->arguments[step.first_argument + i]];
  }
  return std::span(requests_).first(steps.size());
}

launch_request plan_pointers::launch_blocks(const launch_step& step) {
  const block_part* parts = plan_->block_parts.data() + step.first_part;
  void** next = values_.data();
  for (std::int64_t block = 0; block < step.blocks; ++block)
    for (std::uint32_t i = 0; i < step.argument_count; ++i)
      *next++ = static_cast<std::byte*>(table_[plan_->arguments[step.first_argument + i]]) + parts[i].offset +
                block * parts[i].stride;
  launch_request request{.kernel = step.kernel, .grid = step.grid, .buffers = {values_.data(), next}};
  request.blocks = step.blocks;
  request.items_at_once = step.items_at_once;
  return request;
}

foreign_work plan_pointers::call(const call_step& step) {
  for (std::uint32_t i = 0; i < step.argument_count; ++i)
    values_[i] = table_[plan_->arguments[step.first_argument + i]];
  std::span<void* const> all(values_.data(), step.argument_count);
  const foreign_call& what = plan_->calls[step.call];
  return {what.enqueue, what.data, all.first(step.input_count), all.subspan(step.input_count)};
}

graph_node plan_pointers::copy(const copy_step& step) const {
  graph_node node;
  node.what = graph_node::kind::copy;
  node.to = static_cast<std::byte*>(table_[step.to]) + step.to_offset;
  node.from = static_cast<const std::byte*>(table_[step.from]) + step.from_offset;
  node.bytes = step.bytes ? step.bytes : plan_->buffers[step.to].bytes;
  return node;
}

graph_node plan_pointers::node(const plan_step& step) {
  graph_node node;
  if (const auto* s = std::get_if<launch_step>(&step.what)) {
    node.launch = launch(*s);
  } else if (const auto* s = std::get_if<copy_step>(&step.what)) {
    node = copy(*s);
  } else if (const auto* s = std::get_if<count_step>(&step.what)) {
    node.what = graph_node::kind::word;
    node.to = table_[s->to], node.value = counters_[s->counter];
  } else {
    node.what = graph_node::kind::call;
    node.call = call(std::get<call_step>(step.what));
  }
  return node;
}

}  // namespace kiln
