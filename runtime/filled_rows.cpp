// The launches of row kernels: their number depends on the sizes.
#include <algorithm>

#include "runtime/plan_filler.hpp"

namespace kiln {

bool only_writes_rows(const rows_use& use, const plan& of) {
  return std::ranges::none_of(use.rows->inputs, [](const row_part& part) { return part.per_row; }) &&
         std::ranges::all_of(use.outputs, [&](buffer_id id) { return of.buffers[id].place == buffer_place::arena; });
}

void plan_filler::add_rows(const rows_place& at) {
  const bool for_room = room_ && only_writes_rows(at.use, plan_);
  auto set_sizes = [&](std::vector<std::size_t>& bytes, const std::vector<buffer_id>& ids) {
    bytes.clear();
    for (buffer_id id : ids) bytes.push_back(for_room ? plan_.buffers[id].placed_bytes() : plan_.buffers[id].bytes);
  };
  set_sizes(input_bytes_, at.use.inputs);
  set_sizes(output_bytes_, at.use.outputs);
  cover_rows(*at.use.rows, count_rows(*at.use.rows, input_bytes_, output_bytes_, at.use.what), covered_);
  for (const row_blocks& blocks : covered_) {
    if (blocks.valid) add_partial_block(at, blocks);
    else add_blocks(at, blocks, at.use.inputs, at.use.outputs);
  }
}

buffer_id plan_filler::add_buffer(plan_buffer b) {
  plan_.buffers.push_back(b);
  return static_cast<buffer_id>(plan_.buffers.size() - 1);
}

buffer_id plan_filler::add_arena_buffer(const rows_place& at, std::size_t bytes) {
  const buffer_id id = add_buffer({buffer_place::arena, bytes, 0, nullptr});
  added_[at.use.scope].push_back({id, at.step, at.step});
  return id;
}

// The last block has fewer rows than the kernel computes. It gets copies of its rows, some of them repeated in place of
// the missing rows, because arbitrary contents could cause a division by zero.
void plan_filler::add_partial_block(const rows_place& at, row_blocks blocks) {
  const row_blocks wanted = blocks;
  blocks.first_row = blocks.valid = 0;
  std::vector<buffer_id> inputs = at.use.inputs, outputs = at.use.outputs;
  auto bytes = [](std::int64_t rows, const row_part& part) { return static_cast<std::size_t>(rows * part.bytes); };
  auto copy = [&](copy_step step) {
    if (step.bytes) at.steps.push_back({step, at.instruction});
  };
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const row_part& part = at.use.rows->inputs[k];
    if (!part.per_row) continue;
    inputs[k] = add_arena_buffer(at, bytes(wanted.rows, part));
    const std::size_t from = bytes(wanted.first_row, part);
    for (std::int64_t filled = 0; filled < wanted.rows; filled += wanted.valid)
      copy({inputs[k], at.use.inputs[k], bytes(filled, part), from,
            bytes(std::min(wanted.valid, wanted.rows - filled), part)});
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    outputs[o] = add_arena_buffer(at, bytes(wanted.rows, at.use.rows->outputs[o]));
  add_blocks(at, blocks, inputs, outputs);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const row_part& part = at.use.rows->outputs[o];
    copy({at.use.outputs[o], outputs[o], bytes(wanted.first_row, part), 0, bytes(wanted.valid, part)});
  }
}

const rows_version& plan_filler::version_of(const rows_place& at, const row_blocks& blocks,
                                            const std::vector<buffer_id>& inputs) {
  auto& versions = parts_.row_versions;
  versions.resize(parts_.row_uses.size());
  versions[at.number].resize(at.use.rows->versions.size());
  auto& found = versions[at.number][blocks.version];
  if (!found) {
    const std::size_t index = at.use.kernel + blocks.version;
    const native_kernel& kernel = parts_.kernels[index];
    auto made = std::make_unique<rows_version>(
        rows_version{parts_.prepared(index, at.use.payload + "." + std::to_string(blocks.rows), inputs, at.use.rows),
                     launches_per_block(*at.use.rows, kernel),
                     {}});
    for (const launch& what : kernel.launches) made->functions.push_back(plan_.library->find(index, what.symbol));
    for (const prepared_bytes& bytes : made->prepared.scratch)
      if (bytes.owner) parts_.prepared_owners->push_back(bytes.owner);
    found = std::move(made);
  }
  return *found;
}

// Blocks that run at the same time need separate scratch memory.
void plan_filler::add_blocks(const rows_place& at, const row_blocks& blocks, const std::vector<buffer_id>& inputs,
                             const std::vector<buffer_id>& outputs) {
  const native_kernel& kernel = parts_.kernels[at.use.kernel + blocks.version];
  const rows_version& version = version_of(at, blocks, inputs);
  const prepared_kernel& ready = version.prepared;
  const row_launches& blocked = version.blocked;
  std::vector<buffer_id>& scratch = scratch_;
  scratch.clear();
  for (std::size_t b = 0; b < kernel.scratch.size(); ++b) {
    const scratch_buffer& wanted = kernel.scratch[b];
    const auto bytes =
        static_cast<std::size_t>(blocked.scratch[b] ? scratch_stride(wanted) * blocks.count : wanted.bytes);
    if (const auto& found = ready.scratch[b]; found.owner) {
      scratch.push_back(add_buffer({buffer_place::fixed, found.bytes.size(), 0, found.bytes.data()}));
    } else if (wanted.zeroed) {
      scratch.push_back(add_buffer({buffer_place::zeroed, bytes, 0, nullptr}));
    } else {
      scratch.push_back(add_arena_buffer(at, bytes));
    }
  }
  for (std::size_t l = 0; l < kernel.launches.size(); ++l) {
    const launch& what = kernel.launches[l];
    if (ready.done[l] || what.grid == 0) continue;
    launch_step step = append_launch(plan_, what, version.functions[l], {inputs, outputs, scratch});
    if (blocked.launches[l]) {
      step.blocks = blocks.count;
      step.items_at_once = items_at_once(what, *at.use.rows, kernel, blocked, blocks);
      step.first_part = static_cast<std::uint32_t>(plan_.block_parts.size());
      for (const launch_argument& a : what.arguments)
        plan_.block_parts.push_back(part_of(a, *at.use.rows, kernel, blocked, blocks));
    }
    at.steps.push_back({step, at.instruction});
  }
}

}  // namespace kiln
