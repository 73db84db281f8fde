// libFuzzer's target for the reader of SPIR-V: any bytes are refused as corrupted or unsupported, or they are a module.
// Anything else - a crash, what AddressSanitizer and UBSan report, another kind of error, more than libFuzzer's
// -timeout - is a finding. Seven of eight mutations damage instructions and ids (spirv_mutations.hpp), which reach deep
// into the reader; the others are libFuzzer's own. Built and run by fuzz_spirv.sh.
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include "ir/error.hpp"
#include "spirv/reader/binary.hpp"
#include "spirv/reader/fixed_parameters.hpp"
#include "spirv/reader/reader.hpp"
#include "spirv_mutations.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t capacity);

namespace {

struct {
  unsigned long long refused_early = 0, refused_late = 0, read = 0;
} counts;

// Gives every kernel's numbers a value: what comes out is read again.
void fix(std::span<const std::byte> module, const llvm::Module& made) {
  std::vector<kiln::spirv::fixed_kernel> kernels;
  for (const llvm::Function& f : made) {
    if (f.isDeclaration() || !f.hasExternalLinkage()) continue;
    auto& kernel = kernels.emplace_back(kiln::spirv::fixed_kernel{f.getName().str(), {}});
    for (const llvm::Argument& a : f.args())
      kernel.parameters.push_back(a.getType()->isPointerTy() ? std::nullopt : std::optional<std::uint64_t>(3));
  }
  const auto fixed = kiln::spirv::fix_parameters(module, kernels);
  const kiln::spirv::binary checked(fixed);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  std::atexit([] {
    std::fprintf(
        stderr,
        "fuzz_spirv: %llu modules: %llu refused before or by the validator, %llu by the translation, %llu read\n",
        counts.refused_early + counts.refused_late + counts.read, counts.refused_early, counts.refused_late,
        counts.read);
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity,
                                               unsigned seed) {
  if (size < 20 || seed % 8 == 0) return LLVMFuzzerMutate(data, size, capacity);
  auto damaged = kiln::spirv::mutator(seed).damaged(std::as_bytes(std::span(data, size)));
  std::size_t kept = std::min(damaged.size(), capacity);
  std::memcpy(data, damaged.data(), kept);
  return kept;
}

// -1 keeps an input from being mutated further: what its own checks or SPIRV-Tools refuse would be refused for the same
// fault again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto module = std::as_bytes(std::span(data, size));
  bool valid = false;
  try {
    kiln::spirv::binary checked(module);
    valid = true;
    llvm::LLVMContext context;
    const auto made = kiln::spirv::read(module, context, {kiln::spirv::amdgpu_spaces});
    fix(module, *made);
    ++counts.read;
  } catch (const kiln::error& e) {
    if (e.kind() != kiln::error_kind::corrupted && e.kind() != kiln::error_kind::unsupported) {
      std::fprintf(stderr, "fuzz_spirv: %s\n", e.what());
      std::abort();
    }
    ++(valid ? counts.refused_late : counts.refused_early);
  }
  return valid ? 0 : -1;
}
