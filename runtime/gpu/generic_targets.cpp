#include "runtime/gpu/generic_targets.hpp"

namespace kiln::gpu {
namespace {

// The families of LLVM's AMDGPU user guide, "Generic Processors". Where a whole family is named by its first digits, a
// later processor of it is expected to run the code too; its driver refuses the code otherwise. gfx908 and gfx90a have
// matrix instructions of their own and belong to no family, and neither does gfx125x.
struct family_row {
  std::string_view prefix;  // of the architecture's name
  std::size_t length;       // of the whole name
  std::string_view target;
};
constexpr family_row families[] = {
    {"gfx900", 6, "gfx9-generic"},    {"gfx902", 6, "gfx9-generic"},   {"gfx904", 6, "gfx9-generic"},
    {"gfx906", 6, "gfx9-generic"},    {"gfx909", 6, "gfx9-generic"},   {"gfx90c", 6, "gfx9-generic"},
    {"gfx94", 6, "gfx9-4-generic"},   {"gfx950", 6, "gfx9-4-generic"}, {"gfx101", 7, "gfx10-1-generic"},
    {"gfx103", 7, "gfx10-3-generic"}, {"gfx110", 7, "gfx11-generic"},  {"gfx115", 7, "gfx11-generic"},
    {"gfx120", 7, "gfx12-generic"},
};

}  // namespace

std::string_view generic_target(std::string_view architecture) {
  architecture = architecture.substr(0, architecture.find(':'));
  for (const family_row& row : families)
    if (architecture.size() == row.length && architecture.starts_with(row.prefix)) return row.target;
  return {};
}

}  // namespace kiln::gpu
