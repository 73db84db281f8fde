// Checks that a workgroup fits into the GPU's shared memory, before a back end or a driver is called.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/error.hpp"
#include "llvm/IR/Module.h"
#include "spirv/lowering/indices.hpp"
#include "spirv/reader/reader.hpp"

namespace kiln::spirv {
namespace {

bool is_used_by(const llvm::Value& v, const llvm::Function& function, std::set<const llvm::Value*>& seen) {
  if (!seen.insert(&v).second) return false;
  return std::ranges::any_of(v.users(), [&](const llvm::User* user) {
    const auto* i = llvm::dyn_cast<llvm::Instruction>(user);
    return i ? i->getFunction() == &function : is_used_by(*user, function, seen);
  });
}

}  // namespace

void check_shared_memory(const llvm::Function& entry, const launch_site& launch, const lowering_target& target) {
  const llvm::Module& module = *entry.getParent();
  std::uint64_t fixed = 0;
  for (const llvm::GlobalVariable& v : module.globals()) {
    std::set<const llvm::Value*> seen;
    if (!v.hasAttribute(workgroup_attribute) || v.isDeclaration() || !is_used_by(v, entry, seen)) continue;
    fixed = llvm::alignTo(fixed, v.getAlign().valueOrOne()) + module.getDataLayout().getTypeAllocSize(v.getValueType());
  }
  auto all = static_cast<std::int64_t>(fixed) + launch.shared_bytes;
  if (all > target.shared_bytes)
    throw error(error_kind::unsupported,
                fmt::format("kernel '{}' wants {} bytes of shared memory for each workgroup; {} gives {}",
                            launch.kernel, all, target.processor, target.shared_bytes));
  if (target.kind == machine_kind::nvidia && static_cast<std::int64_t>(fixed) > nvidia_fixed_shared_bytes)
    throw error(error_kind::unsupported, fmt::format("kernel '{}' has {} bytes of __shared__ variables; NVIDIA's "
                                                     "compiler takes {}: use extern __shared__ and KILN_SHARED",
                                                     launch.kernel, fixed, nvidia_fixed_shared_bytes));
}

}  // namespace kiln::spirv
