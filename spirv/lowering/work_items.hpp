// How the host runs the work items of a workgroup that meet at barriers or exchange values between lanes. Internal to
// spirv/lowering.
//
// Every such meeting point (a barrier, a shuffle, a ballot) ends a *region*: the code from one meeting point, or the
// kernel's begin, to whichever comes next on any path. A region becomes a function of one work item that returns where
// the item stands then; what lives across a meeting point is saved in arrays with one element for each item. A
// scheduler runs regions as loops over items: of the whole workgroup where only barriers separate them, of a wave where
// its lanes exchange values. Any control flow works: items may stand at different points (divergent branches, early
// returns), and those at the earliest go on first, as lanes of a wave do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace kiln::spirv {

enum class meeting : std::uint8_t { barrier, wave_barrier, shuffle, ballot };

// Declarations that stand for meeting points until regions are made: void kiln.barrier(), void kiln.wave.barrier(),
// i32 kiln.shuffle(i32 value, i32 lane), i32 kiln.ballot(i1).
struct meeting_name {
  meeting kind;
  const char* name;
};
inline constexpr meeting_name meeting_names[] = {{meeting::barrier, "kiln.barrier"},
                                                 {meeting::wave_barrier, "kiln.wave.barrier"},
                                                 {meeting::shuffle, "kiln.shuffle"},
                                                 {meeting::ballot, "kiln.ballot"}};

// Where an item stands: the number of a region that it may enter, with `waits` while it stands at a barrier.
inline constexpr std::uint32_t waits = 0x40000000, finished = 0x7fffffff;

struct region {
  llvm::Function* function = nullptr;  // i32 (the body's parameters..., ptr saved): one item
  meeting begin = meeting::barrier;    // what stands before it; of region 0: nothing
};

struct region_set {
  std::vector<region> regions;    // earlier ones have smaller numbers; region 0 is the kernel's begin
  std::uint64_t saved_bytes = 0;  // of all items together
  bool between_lanes = false;
  // In the memory for saved values: arrays of one i32 for each item.
  std::uint64_t standing_at = 0, value_at = 0, lane_at = 0, result_at = 0;
};

// Integer divisions that would trap give what GPUs give (division.cpp).
void guard_divisions(llvm::Function& body);

// `body` is void(buffers..., i32 item, i32 group, ptr shared), simplified, with calls of meeting points; it is not
// changed otherwise and can be erased afterwards. `items`: of a workgroup.
region_set make_regions(llvm::Function& body, unsigned item_parameter, std::int64_t items);

}  // namespace kiln::spirv
