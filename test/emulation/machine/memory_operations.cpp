// Global and private memory. Addresses are those of this process; every buffer of a kernel ends at a page that cannot
// be accessed.
#include <algorithm>

#include "operations.hpp"
#include "vector.hpp"
#include "workgroup.hpp"

namespace emulation {

namespace {

// Generic addresses: the high half says whether they are those of shared or of private memory (as in decode.py).
constexpr std::uint64_t shared_aperture = 0x2345, private_aperture = 0x2346;

// Address operands are a vector (64 bits), and "off" or a scalar pair; with the pair, the vector is a 32-bit offset.
std::uint64_t global_address(const wave& w, const instruction& i, int vector, int scalar, int lane) {
  const operand& v = i.operands[vector];
  const std::uint64_t low = w.vectors[v.index][lane];
  const auto offset = static_cast<std::uint64_t>(std::int64_t{i.offset});
  if (i.operands[scalar].kind == operand_kind::scalar) return w.pair(i.operands[scalar].index) + low + offset;
  return (low | static_cast<std::uint64_t>(w.vectors[v.index + 1][lane]) << 32) + offset;
}

// Private memory: operands are a 32-bit vector offset or "off", and a scalar offset or "off".
std::uint64_t private_address(const wave& w, const instruction& i, int vector, int scalar_place, int lane) {
  std::int64_t at = i.offset;
  if (i.operands[vector].kind == operand_kind::vector)
    at += static_cast<std::int32_t>(w.vectors[i.operands[vector].index][lane]);
  if (i.operands[scalar_place].kind == operand_kind::scalar)
    at += static_cast<std::int32_t>(scalar(w, i.operands[scalar_place]));
  if (at < 0 || static_cast<std::uint64_t>(at) + 4 > w.scratch_bytes)
    throw refusal("private memory out of bounds: " + std::to_string(at) + " of " + std::to_string(w.scratch_bytes));
  return w.scratch + static_cast<std::uint64_t>(lane) * w.scratch_bytes + static_cast<std::uint64_t>(at);
}

enum class space : std::uint8_t { global, generic, local };

std::uint64_t address_of(wave& w, const instruction& i, space in, int first, int lane, std::uint32_t count,
                         bool writes) {
  if (in == space::local) return private_address(w, i, first, first + 1, lane);
  if (in == space::global) return global_address(w, i, first, first + 1, lane);
  const operand& v = i.operands[first];
  const std::uint64_t at = (w.vectors[v.index][lane] | static_cast<std::uint64_t>(w.vectors[v.index + 1][lane]) << 32) +
                           static_cast<std::uint64_t>(std::int64_t{i.offset});
  if (at >> 32 == shared_aperture) {
    if (writes) w.group->note_atomic(w, i, at & 0xFFFFFFFF, count);
    else w.group->note_read(w, i, at & 0xFFFFFFFF, count);
    return reinterpret_cast<std::uint64_t>(w.group->shared.data()) + (at & 0xFFFFFFFF);
  }
  if (at >> 32 == private_aperture)
    return w.scratch + static_cast<std::uint64_t>(lane) * w.scratch_bytes + (at & 0xFFFFFFFF);
  return at;
}

// Operands: result, address.
template <space in, std::uint32_t count, bool is_signed, part to>
void load(wave& w, const instruction& i) {
  std::array<std::uint64_t, most_lanes> addresses;
  for (int l = 0; l < w.size; ++l)
    if (w.is_active(l)) addresses[l] = address_of(w, i, in, 1, l, count, false);
  for (std::uint32_t word = 0; word < (count + 3) / 4; ++word) {
    lanes& out = w.vector(i.operands[0], word);
    for (int l = 0; l < w.size; ++l) {
      if (!w.is_active(l)) continue;
      std::uint32_t x = 0;
      std::memcpy(&x, reinterpret_cast<const void*>(addresses[l] + 4 * word), std::min(count, 4U));
      if (is_signed)
        x = count == 1 ? static_cast<std::uint32_t>(static_cast<std::int8_t>(x))
                       : static_cast<std::uint32_t>(static_cast<std::int16_t>(x));
      if (to == part::whole) out[l] = x;
      else if (to == part::low_half) out[l] = (x & 0xFFFF) | (i.preserves ? out[l] & 0xFFFF0000 : 0x7E7E0000);
      else out[l] = x << 16 | (i.preserves ? out[l] & 0xFFFF : 0x7E7E);
    }
  }
}

// Operands: address, data, scalar address; "scratch_store off, v1, s0".
template <space in, std::uint32_t count, bool from_high>
void store(wave& w, const instruction& i) {
  instruction addressed = i;
  std::swap(addressed.operands[1], addressed.operands[2]);
  for (int l = 0; l < w.size; ++l) {
    if (!w.is_active(l)) continue;
    const std::uint64_t at = address_of(w, addressed, in, 0, l, count, true);
    for (std::uint32_t word = 0; word < (count + 3) / 4; ++word) {
      const std::uint32_t x = w.vector(i.operands[1], word)[l] >> (from_high ? 16 : 0);
      std::memcpy(reinterpret_cast<void*>(at + 4 * word), &x, std::min(count, 4U));
    }
  }
}

// Operands: (old value,) address, data, scalar address. `compares`: data is the new value and the one that is expected.
template <class T, auto f, bool compares = false>
void atomic(wave& w, const instruction& i) {
  const int first = i.returns ? 1 : 0;
  instruction addressed = i;
  std::swap(addressed.operands[first + 1], addressed.operands[first + 2]);
  constexpr std::uint32_t words = sizeof(T) / 4;
  std::array<std::uint64_t, most_lanes> addresses;
  std::array<T, most_lanes> data, expected;
  for (int l = 0; l < w.size; ++l) {
    if (!w.is_active(l)) continue;
    const bool generic =
        i.operands[first + 2].kind == operand_kind::none && i.operands_given == static_cast<std::uint8_t>(first + 2);
    addresses[l] = address_of(w, addressed, generic ? space::generic : space::global, first, l, sizeof(T), true);
    const auto read = [&](std::uint32_t from) {
      std::uint64_t x = w.vector(i.operands[first + 1], from)[l];
      if (words == 2) x |= static_cast<std::uint64_t>(w.vector(i.operands[first + 1], from + 1)[l]) << 32;
      return static_cast<T>(x);
    };
    data[l] = read(0);
    if (compares) expected[l] = read(words);
  }
  for (int l = 0; l < w.size; ++l) {
    if (!w.is_active(l)) continue;
    T old;
    std::memcpy(&old, reinterpret_cast<const void*>(addresses[l]), sizeof(T));
    const T now = compares && old != expected[l] ? old : static_cast<T>(f(old, data[l]));
    std::memcpy(reinterpret_cast<void*>(addresses[l]), &now, sizeof(T));
    if (!i.returns) continue;
    w.vector(i.operands[0])[l] = static_cast<std::uint32_t>(old);
    if constexpr (words == 2) w.vector(i.operands[0], 1)[l] = static_cast<std::uint32_t>(old >> 32);
  }
}

using u32 = std::uint32_t;
using u64 = std::uint64_t;
constexpr auto add = [](auto a, auto b) { return a + b; };
constexpr auto subtract = [](auto a, auto b) { return a - b; };
constexpr auto least = [](auto a, auto b) { return std::min(a, b); };
constexpr auto greatest = [](auto a, auto b) { return std::max(a, b); };
constexpr auto least_signed = [](u32 a, u32 b) {
  return static_cast<u32>(std::min(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)));
};
constexpr auto greatest_signed = [](u32 a, u32 b) {
  return static_cast<u32>(std::max(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)));
};
constexpr auto both = [](auto a, auto b) { return a & b; };
constexpr auto either = [](auto a, auto b) { return a | b; };
constexpr auto differing = [](auto a, auto b) { return a ^ b; };
constexpr auto exchange = [](auto, auto b) { return b; };
constexpr auto count_up = [](u32 a, u32 b) { return a >= b ? 0 : a + 1; };
constexpr auto add_floats = [](u32 a, u32 b) { return bits_of(to_float(a) + to_float(b)); };
constexpr auto add_halves = [](u32 a, u32 b) {
  return bits_of(static_cast<half>(to_half(a) + to_half(b))) |
         bits_of(static_cast<half>(to_half(a >> 16) + to_half(b >> 16))) << 16;
};

// Copies straight from global memory to LDS (CDNA): address, scalar address. Lane l's words go to M0 + offset + count *
// l.
template <std::uint32_t count>
void load_to_shared(wave& w, const instruction& i) {
  for (int l = 0; l < w.size; ++l) {
    if (!w.is_active(l)) continue;
    const std::uint64_t from = global_address(w, i, 0, 1, l), to = std::uint64_t{w.scalars[m0] & 0x3FFFF} +
                                                                   static_cast<std::uint64_t>(std::int64_t{i.offset}) +
                                                                   std::uint64_t{count} * static_cast<std::uint32_t>(l);
    w.group->note_write(w, i, to, count, reinterpret_cast<const std::uint8_t*>(from));
    std::memcpy(w.group->shared.data() + to, reinterpret_cast<const void*>(from), count);
  }
}

}  // namespace

#define LOADS(prefix, in)                                                                                             \
  {prefix "load_ubyte", load<in, 1, false, part::whole>}, {prefix "load_u8", load<in, 1, false, part::whole>},        \
      {prefix "load_sbyte", load<in, 1, true, part::whole>}, {prefix "load_i8", load<in, 1, true, part::whole>},      \
      {prefix "load_ushort", load<in, 2, false, part::whole>}, {prefix "load_u16", load<in, 2, false, part::whole>},  \
      {prefix "load_sshort", load<in, 2, true, part::whole>}, {prefix "load_i16", load<in, 2, true, part::whole>},    \
      {prefix "load_dword", load<in, 4, false, part::whole>}, {prefix "load_b32", load<in, 4, false, part::whole>},   \
      {prefix "load_dwordx2", load<in, 8, false, part::whole>}, {prefix "load_b64", load<in, 8, false, part::whole>}, \
      {prefix "load_dwordx3", load<in, 12, false, part::whole>},                                                      \
      {prefix "load_b96", load<in, 12, false, part::whole>},                                                          \
      {prefix "load_dwordx4", load<in, 16, false, part::whole>},                                                      \
      {prefix "load_b128", load<in, 16, false, part::whole>},                                                         \
      {prefix "load_short_d16", load<in, 2, false, part::low_half>},                                                  \
      {prefix "load_d16_b16", load<in, 2, false, part::low_half>},                                                    \
      {prefix "load_short_d16_hi", load<in, 2, false, part::high_half>},                                              \
      {prefix "load_d16_hi_b16", load<in, 2, false, part::high_half>},                                                \
      {prefix "load_ubyte_d16", load<in, 1, false, part::low_half>},                                                  \
      {prefix "load_d16_u8", load<in, 1, false, part::low_half>},                                                     \
      {prefix "load_ubyte_d16_hi", load<in, 1, false, part::high_half>},                                              \
      {prefix "load_d16_hi_u8", load<in, 1, false, part::high_half>},                                                 \
      {prefix "load_sbyte_d16", load<in, 1, true, part::low_half>},                                                   \
      {prefix "load_d16_i8", load<in, 1, true, part::low_half>},                                                      \
      {prefix "load_sbyte_d16_hi", load<in, 1, true, part::high_half>},                                               \
      {prefix "load_d16_hi_i8", load<in, 1, true, part::high_half>}, {prefix "store_byte", store<in, 1, false>},      \
      {prefix "store_b8", store<in, 1, false>}, {prefix "store_short", store<in, 2, false>},                          \
      {prefix "store_b16", store<in, 2, false>}, {prefix "store_byte_d16_hi", store<in, 1, true>},                    \
      {prefix "store_d16_hi_b8", store<in, 1, true>}, {prefix "store_short_d16_hi", store<in, 2, true>},              \
      {prefix "store_d16_hi_b16", store<in, 2, true>}, {prefix "store_dword", store<in, 4, false>},                   \
      {prefix "store_b32", store<in, 4, false>}, {prefix "store_dwordx2", store<in, 8, false>},                       \
      {prefix "store_b64", store<in, 8, false>}, {prefix "store_dwordx3", store<in, 12, false>},                      \
      {prefix "store_b96", store<in, 12, false>}, {prefix "store_dwordx4", store<in, 16, false>}, {                   \
    prefix "store_b128", store<in, 16, false>                                                                         \
  }

#define ATOMICS(prefix)                                                                                          \
  {prefix "add", atomic<u32, add>}, {prefix "add_u32", atomic<u32, add>}, {prefix "sub", atomic<u32, subtract>}, \
      {prefix "sub_u32", atomic<u32, subtract>}, {prefix "smin", atomic<u32, least_signed>},                     \
      {prefix "min_i32", atomic<u32, least_signed>}, {prefix "smax", atomic<u32, greatest_signed>},              \
      {prefix "max_i32", atomic<u32, greatest_signed>}, {prefix "umin", atomic<u32, least>},                     \
      {prefix "min_u32", atomic<u32, least>}, {prefix "umax", atomic<u32, greatest>},                            \
      {prefix "max_u32", atomic<u32, greatest>}, {prefix "and", atomic<u32, both>},                              \
      {prefix "and_b32", atomic<u32, both>}, {prefix "or", atomic<u32, either>},                                 \
      {prefix "or_b32", atomic<u32, either>}, {prefix "xor", atomic<u32, differing>},                            \
      {prefix "xor_b32", atomic<u32, differing>}, {prefix "swap", atomic<u32, exchange>},                        \
      {prefix "swap_b32", atomic<u32, exchange>}, {prefix "cmpswap", atomic<u32, exchange, true>},               \
      {prefix "cmpswap_b32", atomic<u32, exchange, true>}, {prefix "inc", atomic<u32, count_up>},                \
      {prefix "inc_u32", atomic<u32, count_up>}, {prefix "add_f32", atomic<u32, add_floats>},                    \
      {prefix "pk_add_f16", atomic<u32, add_halves>}, {prefix "add_x2", atomic<u64, add>},                       \
      {prefix "add_u64", atomic<u64, add>}, {prefix "swap_x2", atomic<u64, exchange>},                           \
      {prefix "swap_b64", atomic<u64, exchange>}, {prefix "cmpswap_x2", atomic<u64, exchange, true>},            \
      {prefix "cmpswap_b64", atomic<u64, exchange, true>}, {prefix "umax_x2", atomic<u64, greatest>},            \
      {prefix "max_u64", atomic<u64, greatest>}, {prefix "umin_x2", atomic<u64, least>},                         \
      {prefix "min_u64", atomic<u64, least>}, {prefix "or_x2", atomic<u64, either>}, {                           \
    prefix "or_b64", atomic<u64, either>                                                                         \
  }

const std::vector<operation> memory_operations = {
    LOADS("global_", space::global),
    LOADS("flat_", space::generic),
    LOADS("scratch_", space::local),
    ATOMICS("global_atomic_"),
    ATOMICS("flat_atomic_"),
    {"global_load_lds_dword", load_to_shared<4>},
    {"global_load_lds_dwordx3", load_to_shared<12>},
    {"global_load_lds_dwordx4", load_to_shared<16>},
};

}  // namespace emulation
