// Matrix instructions: MFMA (CDNA) and WMMA (RDNA). Which element of A, B and D a lane's registers hold is in AMD's
// matrix instruction calculator. A and B must order their inner dimension alike, but the result does not depend on that
// order, so the simplest one is used here. Floats are summed in f32, in the order of the inner dimension, and bytes in
// 32-bit integers.
#include "operations.hpp"
#include "vector.hpp"
#include "workgroup.hpp"

namespace emulation {

namespace {

enum class element : std::uint8_t { f16, bf16, f32, i8, u8 };
constexpr int bits_of_element(element e) {
  return e == element::f32 ? 32 : e == element::i8 || e == element::u8 ? 8 : 16;
}

template <element e>
auto number(const std::uint32_t* lane_words, int n) {
  if constexpr (e == element::f32) return to_float(lane_words[n]);
  else if constexpr (e == element::f16) return static_cast<float>(to_half(lane_words[n / 2] >> (16 * (n % 2))));
  else if constexpr (e == element::bf16) return to_float(lane_words[n / 2] >> (16 * (n % 2)) << 16);
  else if constexpr (e == element::i8)
    return static_cast<std::int32_t>(static_cast<std::int8_t>(lane_words[n / 4] >> (8 * (n % 4))));
  else return static_cast<std::int32_t>(lane_words[n / 4] >> (8 * (n % 4)) & 255);
}

// Calls put(row, k, number) for each element of A, or with columns as rows of B. Lane l holds row l % size, and of the
// inner dimension the own = steps / groups elements from l / size * own on.
template <element e, int size, int steps, int groups, class Put>
void gather(const wave& w, const instruction& i, int n, Put put) {
  constexpr int own = steps / groups;
  constexpr int words = (own * bits_of_element(e) + 31) / 32;
  std::array<lanes, words> registers;
  for (int r = 0; r < words; ++r)
    read_lanes(w, i, n, static_cast<std::uint32_t>(r), registers[static_cast<std::size_t>(r)]);
  for (int l = 0; l < size * groups; ++l) {
    std::array<std::uint32_t, words> own_words;
    for (std::size_t r = 0; r < words; ++r) own_words[r] = registers[r][static_cast<std::size_t>(l)];
    for (int k = 0; k < own; ++k)
      put(static_cast<std::size_t>(l % size), static_cast<std::size_t>(l / size * own + k),
          number<e>(own_words.data(), k));
  }
}

// D = A B + C. Register r of the lanes from l on (l a multiple of `size`) holds row `row`(r, l) of D; columns are
// lanes.
template <element a, element b, int size, int steps, int groups, class Row>
void multiply(wave& w, const instruction& i, int registers, Row row) {
  constexpr bool is_float = a != element::i8 && a != element::u8;
  using T = std::conditional_t<is_float, float, std::uint32_t>;
  static thread_local std::array<std::array<T, steps>, size> left;
  static thread_local std::array<std::array<T, size>, steps> right;
  gather<a, size, steps, groups>(w, i, 1, [](std::size_t m, std::size_t k, auto x) { left[m][k] = static_cast<T>(x); });
  gather<b, size, steps, groups>(w, i, 2,
                                 [](std::size_t m, std::size_t k, auto x) { right[k][m] = static_cast<T>(x); });
  static thread_local std::array<lanes, 16> results;
  const bool same_start = i.operands[3].kind == operand_kind::constant || i.operands[3].kind == operand_kind::scalar;
  for (int r = 0; r < registers; ++r) {
    lanes start;
    read_lanes(w, i, 3, static_cast<std::uint32_t>(same_start ? 0 : r), start);
    for (int first = 0; first < w.size; first += size) {
      const auto& factors = left[static_cast<std::size_t>(row(r, first))];
      std::array<T, size> sums{};
      for (std::size_t k = 0; k < steps; ++k)
        for (std::size_t c = 0; c < size; ++c) sums[c] += factors[k] * right[k][c];
      for (std::size_t c = 0; c < size; ++c) {
        const auto at = static_cast<std::size_t>(first) + c;
        results[static_cast<std::size_t>(r)][at] = std::bit_cast<std::uint32_t>(std::bit_cast<T>(start[at]) + sums[c]);
      }
    }
  }
  // Matrix instructions write all lanes, whatever EXEC is.
  for (int r = 0; r < registers; ++r)
    w.vector(i.operands[0], static_cast<std::uint32_t>(r)) = results[static_cast<std::size_t>(r)];
}

void require_plain(const wave& w, const instruction& i) {
  if (w.active() != w.all()) w.group->findings->emplace(i.address, "a matrix instruction while lanes are switched off");
  if (i.clamps) throw refusal("clamp of a matrix instruction");
}

// MFMA of one block of 16 x 16 or 32 x 32.
template <element e, int size, int steps>
void mfma(wave& w, const instruction& i) {
  require_plain(w, i);
  constexpr int groups = 64 / size;
  if constexpr (size == 16) multiply<e, e, 16, steps, groups>(w, i, 4, [](int r, int l) { return 4 * (l / 16) + r; });
  else multiply<e, e, 32, steps, groups>(w, i, 16, [](int r, int l) { return 8 * (r / 4) + 4 * (l / 32) + r % 4; });
}

// On RDNA 3, lanes 16 to 31 have to repeat A and B of lanes 0 to 15; D's register r has rows 2r and 2r + 1. On RDNA 4,
// the halves of the wave hold halves of the inner dimension, and rows 8 to 15 of D. The length of A says which it is.
template <element a, element b>
void wmma_of(wave& w, const instruction& i) {
  constexpr int repeated = 16 * bits_of_element(a) / 32;
  if (i.operands[1].registers != repeated)
    return multiply<a, b, 16, 16, 2>(w, i, 8, [](int r, int l) { return 8 * (l / 16) + r; });
  for (int n = 1; n <= 2; ++n)
    for (std::uint32_t word = 0; word < repeated; ++word) {
      lanes values;
      read_lanes(w, i, n, word, values);
      for (int l = 0; l < 16; ++l)
        if (values[static_cast<std::size_t>(l)] != values[static_cast<std::size_t>(l + 16)])
          throw refusal("WMMA: lanes 16 to 31 do not repeat lanes 0 to 15");
    }
  multiply<a, b, 16, 16, 1>(w, i, 8, [](int r, int l) { return 2 * r + l / 16; });
}
template <element e>
void wmma(wave& w, const instruction& i) {
  require_plain(w, i);
  if (i.negate_low || i.negate_high) throw refusal("negated WMMA");
  wmma_of<e, e>(w, i);
}
void wmma_bytes(wave& w, const instruction& i) {  // neg_lo says which are signed
  require_plain(w, i);
  switch (i.negate_low & 3) {
    case 0: return wmma_of<element::u8, element::u8>(w, i);
    case 1: return wmma_of<element::i8, element::u8>(w, i);
    case 2: return wmma_of<element::u8, element::i8>(w, i);
    default: return wmma_of<element::i8, element::i8>(w, i);
  }
}

}  // namespace

const std::vector<operation> matrix_operations = {
    {"v_mfma_f32_16x16x16_f16", mfma<element::f16, 16, 16>},
    {"v_mfma_f32_16x16x16f16", mfma<element::f16, 16, 16>},
    {"v_mfma_f32_32x32x8_f16", mfma<element::f16, 32, 8>},
    {"v_mfma_f32_32x32x8f16", mfma<element::f16, 32, 8>},
    {"v_mfma_f32_16x16x32_f16", mfma<element::f16, 16, 32>},
    {"v_mfma_f32_32x32x16_f16", mfma<element::f16, 32, 16>},
    {"v_mfma_f32_16x16x16_bf16", mfma<element::bf16, 16, 16>},
    {"v_mfma_f32_16x16x16bf16_1k", mfma<element::bf16, 16, 16>},
    {"v_mfma_f32_16x16x16_bf16_1k", mfma<element::bf16, 16, 16>},
    {"v_mfma_f32_32x32x8_bf16", mfma<element::bf16, 32, 8>},
    {"v_mfma_f32_32x32x8bf16_1k", mfma<element::bf16, 32, 8>},
    {"v_mfma_f32_32x32x8_bf16_1k", mfma<element::bf16, 32, 8>},
    {"v_mfma_f32_16x16x32_bf16", mfma<element::bf16, 16, 32>},
    {"v_mfma_f32_32x32x16_bf16", mfma<element::bf16, 32, 16>},
    {"v_mfma_f32_16x16x4_f32", mfma<element::f32, 16, 4>},
    {"v_mfma_f32_16x16x4f32", mfma<element::f32, 16, 4>},
    {"v_mfma_f32_32x32x2_f32", mfma<element::f32, 32, 2>},
    {"v_mfma_f32_32x32x2f32", mfma<element::f32, 32, 2>},
    {"v_mfma_i32_16x16x16i8", mfma<element::i8, 16, 16>},
    {"v_mfma_i32_16x16x16_i8", mfma<element::i8, 16, 16>},
    {"v_mfma_i32_32x32x8i8", mfma<element::i8, 32, 8>},
    {"v_mfma_i32_32x32x8_i8", mfma<element::i8, 32, 8>},
    {"v_mfma_i32_16x16x32_i8", mfma<element::i8, 16, 32>},
    {"v_mfma_i32_32x32x16_i8", mfma<element::i8, 32, 16>},
    {"v_mfma_i32_16x16x64_i8", mfma<element::i8, 16, 64>},
    {"v_mfma_i32_32x32x32_i8", mfma<element::i8, 32, 32>},
    {"v_wmma_f32_16x16x16_f16", wmma<element::f16>},
    {"v_wmma_f32_16x16x16_bf16", wmma<element::bf16>},
    {"v_wmma_i32_16x16x16_iu8", wmma_bytes},
};

}  // namespace emulation
