// How the host runs the work items of a workgroup that synchronize at barriers or exchange values between lanes.
// Internal to spirv/lowering.
// Every synchronization point (a barrier, a shuffle, a ballot) ends a *region*: the code from one synchronization
// point, or from the kernel's entry, to the next one on any path. A region becomes a function that runs one work item
// and returns the item's next position. Values that are live across a synchronization point are saved in arrays with
// one element per item. A scheduler runs regions as loops over items: over the whole workgroup if there are only
// barriers, over a wave if its lanes exchange values. Any control flow is supported. Items may be at different
// positions (divergent branches, early returns); those at the earliest position run first, as lanes of a wave do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace kiln::spirv {

enum class synchronization : std::uint8_t { barrier, wave_barrier, shuffle, ballot };

// Placeholder functions for synchronization points until regions are made: void kiln.barrier(), void
// kiln.wave.barrier(), i32 kiln.shuffle(i32 value, i32 lane), i32 kiln.ballot(i1).
struct synchronization_name {
  synchronization kind;
  const char* name;
};
inline constexpr synchronization_name synchronization_names[] = {{synchronization::barrier, "kiln.barrier"},
                                                                 {synchronization::wave_barrier, "kiln.wave.barrier"},
                                                                 {synchronization::shuffle, "kiln.shuffle"},
                                                                 {synchronization::ballot, "kiln.ballot"}};

// An item's position is the number of the region that it enters next. The flag `waits` is set while the item is at a
// barrier.
inline constexpr std::uint32_t waits = 0x40000000, finished = 0x7fffffff;

struct region {
  llvm::Function* function = nullptr;  // i32 (the body's parameters..., ptr saved): runs one item
  // The synchronization point at which the region begins; unused for region 0.
  synchronization begin = synchronization::barrier;
};

struct region_set {
  std::vector<region> regions;    // in code order; region 0 begins at the kernel's entry
  std::uint64_t saved_bytes = 0;  // for all items together
  bool between_lanes = false;
  // Offsets in the memory for saved values: arrays with one i32 per item.
  std::uint64_t standing_at = 0, value_at = 0, lane_at = 0, result_at = 0;
};

// Makes integer divisions that would trap return what GPUs return (division.cpp).
void guard_divisions(llvm::Function& body);

// `body` is void(buffers..., i32 item, i32 group, ptr shared), simplified, with calls of the placeholders. Its values
// are demoted to stack slots, and it can be erased afterwards. `items` is the number of work items in a workgroup.
region_set make_regions(llvm::Function& body, unsigned item_parameter, std::int64_t items);

}  // namespace kiln::spirv
