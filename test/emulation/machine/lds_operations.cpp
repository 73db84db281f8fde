// Shared memory (LDS): loads, stores, atomics and permutations through it.
#include <algorithm>

#include "operations.hpp"
#include "vector.hpp"
#include "workgroup.hpp"

namespace emulation {

namespace {

// Operands of loads: result, address; of stores: address, data (twice for the forms with two addresses).
template <std::uint32_t count, bool is_signed, part to>
void load_one(wave& w, const instruction& i) {
  const lanes& addresses = w.vector(i.operands[1]);
  for (int l = 0; l < w.size; ++l) {
    if (!w.is_active(l)) continue;
    const std::uint64_t at = addresses[l] + static_cast<std::uint32_t>(i.offset);
    w.group->note_read(w, i, at, count);
  }
  // The address register may be one of the results.
  const lanes from = addresses;
  for (std::uint32_t word = 0; word < (count + 3) / 4; ++word) {
    lanes& out = w.vector(i.operands[0], word);
    for (int l = 0; l < w.size; ++l) {
      if (!w.is_active(l)) continue;
      const std::uint8_t* p = w.group->shared.data() + (from[l] + static_cast<std::uint32_t>(i.offset)) + 4 * word;
      std::uint32_t x = 0;
      std::memcpy(&x, p, std::min(count, 4U));
      if (is_signed)
        x = count == 1 ? static_cast<std::uint32_t>(static_cast<std::int8_t>(x))
                       : static_cast<std::uint32_t>(static_cast<std::int16_t>(x));
      if (to == part::whole) out[l] = x;
      // GPUs with waves of 64 lanes may overwrite the other half of the register (they have error correction), so it
      // gets a value that would show in a result.
      else if (to == part::low_half) out[l] = (x & 0xFFFF) | (i.preserves ? out[l] & 0xFFFF0000 : 0x7E7E0000);
      else out[l] = x << 16 | (i.preserves ? out[l] & 0xFFFF : 0x7E7E);
    }
  }
}

void write(wave& w, const instruction& i, std::uint64_t at, std::uint32_t count, const std::uint32_t* words) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(words);
  w.group->note_write(w, i, at, count, data);
  std::memcpy(w.group->shared.data() + at, data, count);
}

template <std::uint32_t count, bool from_high>
void store_one(wave& w, const instruction& i) {
  const lanes& addresses = w.vector(i.operands[0]);
  for (int l = 0; l < w.size; ++l) {
    if (!w.is_active(l)) continue;
    const std::uint64_t at = addresses[l] + static_cast<std::uint32_t>(i.offset);
    std::array<std::uint32_t, (count + 3) / 4> words;
    for (std::uint32_t n = 0; n < words.size(); ++n) words[n] = w.vector(i.operands[1], n)[l] >> (from_high ? 16 : 0);
    write(w, i, at, count, words.data());
  }
}

template <std::uint32_t count, std::uint32_t stride>
void load_two(wave& w, const instruction& i) {
  const lanes addresses = w.vector(i.operands[1]);
  constexpr std::uint32_t words = count / 4;
  for (std::uint32_t which = 0; which < 2; ++which) {
    const std::uint32_t offset = static_cast<std::uint32_t>(which ? i.second_offset : i.offset) * count * stride;
    for (int l = 0; l < w.size; ++l) {
      if (!w.is_active(l)) continue;
      const std::uint64_t at = addresses[l] + offset;
      w.group->note_read(w, i, at, count);
      for (std::uint32_t word = 0; word < words; ++word)
        std::memcpy(&w.vector(i.operands[0], which * words + word)[l], w.group->shared.data() + at + 4 * word, 4);
    }
  }
}

template <std::uint32_t count, std::uint32_t stride>
void store_two(wave& w, const instruction& i) {
  const lanes& addresses = w.vector(i.operands[0]);
  for (std::uint32_t which = 0; which < 2; ++which) {
    const std::uint32_t offset = static_cast<std::uint32_t>(which ? i.second_offset : i.offset) * count * stride;
    for (int l = 0; l < w.size; ++l) {
      if (!w.is_active(l)) continue;
      const std::uint64_t at = addresses[l] + offset;
      std::array<std::uint32_t, count / 4> words;
      for (std::uint32_t n = 0; n < words.size(); ++n) words[n] = w.vector(i.operands[1 + which], n)[l];
      write(w, i, at, count, words.data());
    }
  }
}

// Operands: (old value,) address, data.
template <auto f, bool returns>
void atomic(wave& w, const instruction& i) {
  constexpr int first = returns ? 1 : 0;
  const lanes addresses = w.vector(i.operands[first]), data = w.vector(i.operands[first + 1]);
  for (int l = 0; l < w.size; ++l) {
    if (!w.is_active(l)) continue;
    const std::uint64_t at = addresses[l] + static_cast<std::uint32_t>(i.offset);
    w.group->note_atomic(w, i, at, 4);
    std::uint32_t old = 0;
    std::memcpy(&old, w.group->shared.data() + at, 4);
    const std::uint32_t now = f(old, data[l]);
    std::memcpy(w.group->shared.data() + at, &now, 4);
    if (returns) w.vector(i.operands[0])[l] = old;
  }
}

void permute_from(wave& w, const instruction& i) {  // ds_bpermute_b32: result, address, data
  const lanes addresses = w.vector(i.operands[1]), data = w.vector(i.operands[2]);
  lanes results;
  for (int l = 0; l < most_lanes; ++l) {
    const auto from = static_cast<int>((addresses[l] + static_cast<std::uint32_t>(i.offset)) >> 2 &
                                       static_cast<std::uint32_t>(w.size - 1));
    results[l] = i.fetch_inactive || w.is_active(from) ? data[from] : 0;
  }
  write_lanes(w, i, i.operands[0], 0, results);
}

void permute_to(wave& w, const instruction& i) {  // ds_permute_b32
  const lanes addresses = w.vector(i.operands[1]), data = w.vector(i.operands[2]);
  lanes results{};
  for (int l = 0; l < w.size; ++l)
    if (w.is_active(l))
      results[(addresses[l] + static_cast<std::uint32_t>(i.offset)) >> 2 & static_cast<std::uint32_t>(w.size - 1)] =
          data[l];
  write_lanes(w, i, i.operands[0], 0, results);
}

void swizzle(wave& w, const instruction& i) {  // ds_swizzle_b32; control is the offset of the encoding
  const lanes data = w.vector(i.operands[1]);
  const std::uint32_t c = i.control;
  if (c >= 0xC000) throw refusal("ds_swizzle that rotates");
  lanes results;
  for (int l = 0; l < most_lanes; ++l) {
    int from = 0;
    if (c >> 15) from = (l & ~3) | static_cast<int>(c >> (2 * (l & 3)) & 3);
    else
      from =
          (l & ~31) | static_cast<int>((((static_cast<std::uint32_t>(l) & c & 31) | (c >> 5 & 31)) ^ (c >> 10)) & 31);
    results[l] = from < w.size && w.is_active(from) ? data[from] : 0;
  }
  write_lanes(w, i, i.operands[0], 0, results);
}

using u32 = std::uint32_t;
constexpr auto add = [](u32 a, u32 b) { return a + b; };
constexpr auto subtract = [](u32 a, u32 b) { return a - b; };
constexpr auto least = [](u32 a, u32 b) { return std::min(a, b); };
constexpr auto greatest = [](u32 a, u32 b) { return std::max(a, b); };
constexpr auto least_signed = [](u32 a, u32 b) {
  return static_cast<u32>(std::min(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)));
};
constexpr auto greatest_signed = [](u32 a, u32 b) {
  return static_cast<u32>(std::max(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)));
};
constexpr auto both = [](u32 a, u32 b) { return a & b; };
constexpr auto either = [](u32 a, u32 b) { return a | b; };
constexpr auto exchange = [](u32, u32 b) { return b; };
constexpr auto add_floats = [](u32 a, u32 b) { return bits_of(to_float(a) + to_float(b)); };

}  // namespace

const std::vector<operation> lds_operations = {
    {"ds_read_b32", load_one<4, false, part::whole>},
    {"ds_load_b32", load_one<4, false, part::whole>},
    {"ds_read_b64", load_one<8, false, part::whole>},
    {"ds_load_b64", load_one<8, false, part::whole>},
    {"ds_read_b96", load_one<12, false, part::whole>},
    {"ds_load_b96", load_one<12, false, part::whole>},
    {"ds_read_b128", load_one<16, false, part::whole>},
    {"ds_load_b128", load_one<16, false, part::whole>},
    {"ds_read_u8", load_one<1, false, part::whole>},
    {"ds_load_u8", load_one<1, false, part::whole>},
    {"ds_read_i8", load_one<1, true, part::whole>},
    {"ds_load_i8", load_one<1, true, part::whole>},
    {"ds_read_u16", load_one<2, false, part::whole>},
    {"ds_load_u16", load_one<2, false, part::whole>},
    {"ds_read_i16", load_one<2, true, part::whole>},
    {"ds_load_i16", load_one<2, true, part::whole>},
    {"ds_read_u16_d16", load_one<2, false, part::low_half>},
    {"ds_load_u16_d16", load_one<2, false, part::low_half>},
    {"ds_read_u16_d16_hi", load_one<2, false, part::high_half>},
    {"ds_load_u16_d16_hi", load_one<2, false, part::high_half>},
    {"ds_read_u8_d16", load_one<1, false, part::low_half>},
    {"ds_load_u8_d16", load_one<1, false, part::low_half>},
    {"ds_read_u8_d16_hi", load_one<1, false, part::high_half>},
    {"ds_load_u8_d16_hi", load_one<1, false, part::high_half>},
    {"ds_read2_b32", load_two<4, 1>},
    {"ds_load_2addr_b32", load_two<4, 1>},
    {"ds_read2_b64", load_two<8, 1>},
    {"ds_load_2addr_b64", load_two<8, 1>},
    {"ds_read2st64_b32", load_two<4, 64>},
    {"ds_load_2addr_stride64_b32", load_two<4, 64>},
    {"ds_read2st64_b64", load_two<8, 64>},
    {"ds_load_2addr_stride64_b64", load_two<8, 64>},
    {"ds_write_b8", store_one<1, false>},
    {"ds_store_b8", store_one<1, false>},
    {"ds_write_b16", store_one<2, false>},
    {"ds_store_b16", store_one<2, false>},
    {"ds_write_b8_d16_hi", store_one<1, true>},
    {"ds_store_b8_d16_hi", store_one<1, true>},
    {"ds_write_b16_d16_hi", store_one<2, true>},
    {"ds_store_b16_d16_hi", store_one<2, true>},
    {"ds_write_b32", store_one<4, false>},
    {"ds_store_b32", store_one<4, false>},
    {"ds_write_b64", store_one<8, false>},
    {"ds_store_b64", store_one<8, false>},
    {"ds_write_b96", store_one<12, false>},
    {"ds_store_b96", store_one<12, false>},
    {"ds_write_b128", store_one<16, false>},
    {"ds_store_b128", store_one<16, false>},
    {"ds_write2_b32", store_two<4, 1>},
    {"ds_store_2addr_b32", store_two<4, 1>},
    {"ds_write2_b64", store_two<8, 1>},
    {"ds_store_2addr_b64", store_two<8, 1>},
    {"ds_write2st64_b32", store_two<4, 64>},
    {"ds_store_2addr_stride64_b32", store_two<4, 64>},
    {"ds_write2st64_b64", store_two<8, 64>},
    {"ds_store_2addr_stride64_b64", store_two<8, 64>},
    {"ds_add_u32", atomic<add, false>},
    {"ds_add_rtn_u32", atomic<add, true>},
    {"ds_sub_u32", atomic<subtract, false>},
    {"ds_sub_rtn_u32", atomic<subtract, true>},
    {"ds_min_u32", atomic<least, false>},
    {"ds_max_u32", atomic<greatest, false>},
    {"ds_min_i32", atomic<least_signed, false>},
    {"ds_max_i32", atomic<greatest_signed, false>},
    {"ds_min_rtn_u32", atomic<least, true>},
    {"ds_max_rtn_u32", atomic<greatest, true>},
    {"ds_min_rtn_i32", atomic<least_signed, true>},
    {"ds_max_rtn_i32", atomic<greatest_signed, true>},
    {"ds_and_b32", atomic<both, false>},
    {"ds_or_b32", atomic<either, false>},
    {"ds_and_rtn_b32", atomic<both, true>},
    {"ds_or_rtn_b32", atomic<either, true>},
    {"ds_wrxchg_rtn_b32", atomic<exchange, true>},
    {"ds_storexchg_rtn_b32", atomic<exchange, true>},
    {"ds_add_f32", atomic<add_floats, false>},
    {"ds_add_rtn_f32", atomic<add_floats, true>},
    {"ds_bpermute_b32", permute_from},
    {"ds_permute_b32", permute_to},
    {"ds_swizzle_b32", swizzle},
    {"ds_nop", [](wave&, const instruction&) {}},
};

}  // namespace emulation
