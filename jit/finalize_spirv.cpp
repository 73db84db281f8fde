#include "jit/finalize_spirv.hpp"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "jit/spirv_launches.hpp"
#include "mlir_bridge/finalize_llvm.hpp"
#include "spirv/lowering/lowering.hpp"
#include "spirv/object.hpp"
#include "spirv/reader/reader.hpp"

namespace kiln {
namespace {

struct family_row {
  target_family family;
  spirv::machine_kind kind;
  spirv::address_spaces spaces;
};
constexpr std::array family_rows{
    family_row{target_family::cpu, spirv::machine_kind::host, spirv::host_spaces},
    family_row{target_family::amdgpu, spirv::machine_kind::amdgpu, spirv::amdgpu_spaces},
    family_row{target_family::nvidia, spirv::machine_kind::nvidia, spirv::nvidia_spaces},
};

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

native_kernel finalize_spirv(std::span<const std::byte> payload, std::span<const shape> inputs,
                             std::span<const shape> outputs, const target_row& target, finalize_trace* trace) {
  auto begin = std::chrono::steady_clock::now();
  spirv::object object = spirv::deserialize_object(payload);
  native_kernel result;
  std::vector<spirv::launch_site> sites = make_launches(object, inputs, outputs, target, result);

  const family_row& row = *std::ranges::find(family_rows, target.family, &family_row::family);
  llvm::LLVMContext context;
  auto module = spirv::read(object.words, context, {row.spaces, target.triple.c_str()});
  if (trace) trace->generate_ms = milliseconds_since(begin);
  begin = std::chrono::steady_clock::now();
  spirv::lowering_target lowering{row.kind, row.kind == spirv::machine_kind::host ? spirv::host_wave : target.gpu.wave,
                                  target.processor, target.features, target.gpu.lds_bytes};
  spirv::make_entries(*module, sites, row.kind);
  auto functions = spirv::lower_math(*module, lowering);
  if (row.kind == spirv::machine_kind::host) spirv::lower_host(*module, sites, lowering);
  else spirv::lower_gpu(*module, sites, lowering);
  define_math(*module, functions, target);
  if (trace) trace->lower_ms = milliseconds_since(begin);
  finalize_llvm(*module, target, result, trace);
  return result;
}

bool is_spirv_payload(std::span<const std::byte> payload) {
  return payload.size() >= 8 && std::memcmp(payload.data() + 4, "KSPV", 4) == 0;
}

}  // namespace kiln
