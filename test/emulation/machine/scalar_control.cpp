// The scalar unit: comparisons, EXEC, branches, loads, and what does nothing here.
#include <algorithm>
#include <limits>

#include "operations.hpp"
#include "vector.hpp"

namespace emulation {

namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

u32 low(const wave& w, const instruction& i, int n) { return scalar(w, i.operands[n]); }
u64 wide(const wave& w, const instruction& i, int n) { return scalar_pair(w, i.operands[n]); }

// exec = f(source, exec), result = exec as it was
template <auto f>
void save_exec(wave& w, const instruction& i) {
  const u64 before = w.active(), now = f(scalar_mask(w, i.operands[1]), before) & w.all();
  set_scalar_mask(w, i.operands[0], before);
  w.set_mask(exec, now);
  w.scc = now != 0;
}
template <auto f>
void compare_scalars(wave& w, const instruction& i) {
  w.scc = f(low(w, i, 0), low(w, i, 1));
}
template <auto f>
void compare_signed(wave& w, const instruction& i) {
  w.scc = f(static_cast<i32>(low(w, i, 0)), static_cast<i32>(low(w, i, 1)));
}
template <auto f>
void compare_floats(wave& w, const instruction& i) {
  w.scc = f(to_float(low(w, i, 0)), to_float(low(w, i, 1)));
}
template <auto holds>
void branch(wave& w, const instruction& i) {
  if (holds(w)) w.next = static_cast<u32>(i.target);
}

void nothing(wave&, const instruction&) {}
void barrier(wave& w, const instruction&) { w.at_barrier = true; }
void end(wave& w, const instruction&) { w.ended = true; }

void position(wave& w, const instruction& i) { set_scalar_pair(w, i.operands[0], i.address + i.bytes); }

// Loads of the scalar unit: result, address (a pair), offset or a register with one.
u64 address_of(const wave& w, const instruction& i) {
  u64 address = wide(w, i, 1) + static_cast<u64>(static_cast<i64>(i.offset));
  if (i.operands_given > 2)
    address += i.operands[2].kind == operand_kind::constant ? i.operands[2].value : u64{low(w, i, 2)};
  return address;
}
template <u32 count>
void load(wave& w, const instruction& i) {
  const u64 address = address_of(w, i) & ~u64{3};
  for (u32 n = 0; n < count; ++n)
    std::memcpy(&w.scalars[i.operands[0].index + n], reinterpret_cast<const void*>(address + 4 * n), 4);
}

template <class T>
void load_narrow(wave& w, const instruction& i) {
  T x;
  std::memcpy(&x, reinterpret_cast<const void*>(address_of(w, i)), sizeof x);
  set_scalar(w, i.operands[0], static_cast<u32>(static_cast<i32>(x)));
}

}  // namespace

#define SAVE_EXEC(bits)                                                                \
  {"s_and_saveexec_" bits, save_exec<[](u64 s, u64 e) { return s & e; }>},             \
      {"s_or_saveexec_" bits, save_exec<[](u64 s, u64 e) { return s | e; }>},          \
      {"s_xor_saveexec_" bits, save_exec<[](u64 s, u64 e) { return s ^ e; }>},         \
      {"s_andn2_saveexec_" bits, save_exec<[](u64 s, u64 e) { return s & ~e; }>},      \
      {"s_and_not1_saveexec_" bits, save_exec<[](u64 s, u64 e) { return s & ~e; }>},   \
      {"s_orn2_saveexec_" bits, save_exec<[](u64 s, u64 e) { return s | ~e; }>},       \
      {"s_or_not1_saveexec_" bits, save_exec<[](u64 s, u64 e) { return s | ~e; }>},    \
      {"s_and_not0_saveexec_" bits, save_exec<[](u64 s, u64 e) { return ~s & e; }>}, { \
    "s_or_not0_saveexec_" bits, save_exec<[](u64 s, u64 e) { return ~s | e; }>         \
  }

#define COMPARISONS(prefix)                                                    \
  {prefix "lt_u32", compare_scalars<[](u32 a, u32 b) { return a < b; }>},      \
      {prefix "le_u32", compare_scalars<[](u32 a, u32 b) { return a <= b; }>}, \
      {prefix "gt_u32", compare_scalars<[](u32 a, u32 b) { return a > b; }>},  \
      {prefix "ge_u32", compare_scalars<[](u32 a, u32 b) { return a >= b; }>}, \
      {prefix "eq_u32", compare_scalars<[](u32 a, u32 b) { return a == b; }>}, \
      {prefix "lg_u32", compare_scalars<[](u32 a, u32 b) { return a != b; }>}, \
      {prefix "eq_i32", compare_scalars<[](u32 a, u32 b) { return a == b; }>}, \
      {prefix "lg_i32", compare_scalars<[](u32 a, u32 b) { return a != b; }>}, \
      {prefix "lt_i32", compare_signed<[](i32 a, i32 b) { return a < b; }>},   \
      {prefix "le_i32", compare_signed<[](i32 a, i32 b) { return a <= b; }>},  \
      {prefix "gt_i32", compare_signed<[](i32 a, i32 b) { return a > b; }>}, { \
    prefix "ge_i32", compare_signed<[](i32 a, i32 b) { return a >= b; }>       \
  }

const std::vector<operation> scalar_control = {
    SAVE_EXEC("b32"),
    SAVE_EXEC("b64"),
    COMPARISONS("s_cmp_"),
    COMPARISONS("s_cmpk_"),
    {"s_cmp_eq_u64", [](wave& w, const instruction& i) { w.scc = wide(w, i, 0) == wide(w, i, 1); }},
    {"s_cmp_lg_u64", [](wave& w, const instruction& i) { w.scc = wide(w, i, 0) != wide(w, i, 1); }},
    {"s_bitcmp0_b32", compare_scalars<[](u32 a, u32 b) { return !(a >> (b & 31) & 1); }>},
    {"s_bitcmp1_b32", compare_scalars<[](u32 a, u32 b) { return static_cast<bool>(a >> (b & 31) & 1); }>},
    {"s_cmp_lt_f32", compare_floats<[](float a, float b) { return a < b; }>},
    {"s_cmp_le_f32", compare_floats<[](float a, float b) { return a <= b; }>},
    {"s_cmp_gt_f32", compare_floats<[](float a, float b) { return a > b; }>},
    {"s_cmp_ge_f32", compare_floats<[](float a, float b) { return a >= b; }>},
    {"s_cmp_eq_f32", compare_floats<[](float a, float b) { return a == b; }>},
    {"s_cmp_lg_f32", compare_floats<[](float a, float b) { return a < b || a > b; }>},
    {"s_cmp_neq_f32", compare_floats<[](float a, float b) { return a != b; }>},
    {"s_cmp_o_f32", compare_floats<[](float a, float b) { return a == a && b == b; }>},
    {"s_cmp_u_f32", compare_floats<[](float a, float b) { return a != a || b != b; }>},
    {"s_cmp_nlt_f32", compare_floats<[](float a, float b) { return !(a < b); }>},
    {"s_cmp_ngt_f32", compare_floats<[](float a, float b) { return !(a > b); }>},
    {"s_cmp_nge_f32", compare_floats<[](float a, float b) { return !(a >= b); }>},
    {"s_cmp_nle_f32", compare_floats<[](float a, float b) { return !(a <= b); }>},
    {"s_branch", branch<[](const wave&) { return true; }>},
    {"s_cbranch_scc0", branch<[](const wave& w) { return !w.scc; }>},
    {"s_cbranch_scc1", branch<[](const wave& w) { return w.scc; }>},
    {"s_cbranch_execz", branch<[](const wave& w) { return !w.active(); }>},
    {"s_cbranch_execnz", branch<[](const wave& w) { return w.active() != 0; }>},
    {"s_cbranch_vccz", branch<[](const wave& w) { return !w.mask(vcc); }>},
    {"s_cbranch_vccnz", branch<[](const wave& w) { return w.mask(vcc) != 0; }>},
    {"s_getpc_b64", position},
    {"s_barrier", barrier},
    {"s_barrier_wait", barrier},
    {"s_barrier_signal", nothing},
    {"s_endpgm", end},
    {"s_load_dword", load<1>},
    {"s_load_dwordx2", load<2>},
    {"s_load_dwordx3", load<3>},
    {"s_load_dwordx4", load<4>},
    {"s_load_dwordx8", load<8>},
    {"s_load_dwordx16", load<16>},
    {"s_load_b32", load<1>},
    {"s_load_b64", load<2>},
    {"s_load_b96", load<3>},
    {"s_load_b128", load<4>},
    {"s_load_b256", load<8>},
    {"s_load_b512", load<16>},
    {"s_load_u8", load_narrow<std::uint8_t>},
    {"s_load_i8", load_narrow<std::int8_t>},
    {"s_load_u16", load_narrow<std::uint16_t>},
    {"s_load_i16", load_narrow<std::int16_t>},
    // One wave runs at a time, every access is finished at once, and there are no caches: waits, hints and cache
    // control do nothing.
    {"s_waitcnt", nothing},
    {"s_waitcnt_vscnt", nothing},
    {"s_waitcnt_vmcnt", nothing},
    {"s_waitcnt_lgkmcnt", nothing},
    {"s_waitcnt_depctr", nothing},
    {"s_wait_alu", nothing},
    {"s_wait_loadcnt", nothing},
    {"s_wait_storecnt", nothing},
    {"s_wait_dscnt", nothing},
    {"s_wait_kmcnt", nothing},
    {"s_wait_loadcnt_dscnt", nothing},
    {"s_wait_storecnt_dscnt", nothing},
    {"s_wait_idle", nothing},
    {"s_wait_samplecnt", nothing},
    {"s_wait_bvhcnt", nothing},
    {"s_nop", nothing},
    {"s_clause", nothing},
    {"s_delay_alu", nothing},
    {"s_sleep", nothing},
    {"s_setprio", nothing},
    {"s_sendmsg", nothing},
    {"s_set_inst_prefetch_distance", nothing},
    {"s_inst_prefetch", nothing},
    {"s_prefetch_inst", nothing},
    {"s_dcache_inv", nothing},
    {"s_icache_inv", nothing},
    {"s_gl1_inv", nothing},
    {"s_code_end", nothing},
    {"v_nop", nothing},
    {"buffer_gl0_inv", nothing},
    {"buffer_gl1_inv", nothing},
    {"buffer_inv", nothing},
    {"buffer_wbl2", nothing},
    {"buffer_wbinvl1_vol", nothing},
    {"buffer_wbinvl1", nothing},
    {"global_inv", nothing},
    {"global_wb", nothing},
    {"global_wbinv", nothing},
};

}  // namespace emulation
