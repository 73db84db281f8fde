// Operations between the lanes of a wave: permutations, counts of lanes, transfers to and from scalar registers.
#include "operations.hpp"
#include "vector.hpp"

namespace emulation {

namespace {

int first_active(const wave& w) { return w.active() ? std::countr_zero(w.active()) : 0; }

void read_first_lane(wave& w, const instruction& i) {
  lanes values;
  read_lanes(w, i, 1, 0, values);
  set_scalar(w, i.operands[0], values[first_active(w)]);
}

void read_lane(wave& w, const instruction& i) {
  lanes values;
  read_lanes(w, i, 1, 0, values);
  set_scalar(w, i.operands[0], values[scalar(w, i.operands[2]) % static_cast<std::uint32_t>(w.size)]);
}

void write_lane(wave& w, const instruction& i) {  // whatever EXEC is
  w.vector(i.operands[0])[scalar(w, i.operands[2]) % static_cast<std::uint32_t>(w.size)] = scalar(w, i.operands[1]);
}

// v_mbcnt: how many of the mask's lanes are below this one, in the low or the high 32 lanes.
template <bool high>
void count_below(wave& w, const instruction& i) {
  const source<std::uint32_t> mask(w, i, 1), start(w, i, 2);
  std::array<std::uint32_t, most_lanes> results;
  for (int l = 0; l < most_lanes; ++l) {
    const std::uint64_t below = (std::uint64_t{1} << l) - 1;
    const auto part = static_cast<std::uint32_t>(high ? below >> 32 : below);
    results[l] = static_cast<std::uint32_t>(std::popcount(part & mask.values[l])) + start.values[l];
  }
  write_result(w, i, i.operands[0], results);
}

// v_permlane16_b32, v_permlanex16_b32: each lane takes a lane of its row of 16, or of the other row of its pair.
// op_sel: fetch inactive lanes, write zero where there is none.
template <bool other_row>
void permute_row(wave& w, const instruction& i) {
  lanes values;
  read_lanes(w, i, 1, 0, values);
  const std::uint64_t order = scalar(w, i.operands[2]) | static_cast<std::uint64_t>(scalar(w, i.operands[3])) << 32;
  const bool fetches = i.select_low & 1, zeroes = i.select_low & 2;
  lanes results = w.vector(i.operands[0]);
  for (int l = 0; l < w.size; ++l) {
    const int from = ((l & ~15) ^ (other_row ? 16 : 0)) + static_cast<int>(order >> (4 * (l & 15)) & 15);
    if (fetches || w.is_active(from)) results[l] = values[from];
    else if (zeroes) results[l] = 0;
  }
  write_lanes(w, i, i.operands[0], 0, results);
}

template <bool other_row>
void permute_row_variable(wave& w, const instruction& i) {  // v_permlane16_var_b32
  lanes values, order;
  read_lanes(w, i, 1, 0, values), read_lanes(w, i, 2, 0, order);
  lanes results = w.vector(i.operands[0]);
  for (int l = 0; l < w.size; ++l) {
    const int from = ((l & ~15) ^ (other_row ? 16 : 0)) + static_cast<int>(order[l] & 15);
    if ((i.select_low & 1) || w.is_active(from)) results[l] = values[from];
    else if (i.select_low & 2) results[l] = 0;
  }
  write_lanes(w, i, i.operands[0], 0, results);
}

void permute_halves(wave& w, const instruction& i) {  // v_permlane64_b32: lanes 0-31 and 32-63 change places
  lanes values, results;
  read_lanes(w, i, 1, 0, values);
  for (int l = 0; l < most_lanes; ++l) results[l] = w.size == 64 ? values[l ^ 32] : values[l];
  write_lanes(w, i, i.operands[0], 0, results);
}

template <int width>
void swap_rows(wave& w, const instruction& i) {  // v_permlane32_swap_b32, v_permlane16_swap_b32: odd rows of the first
                                                 // and even ones of the second
  lanes& a = w.vector(i.operands[0]);
  lanes& b = w.vector(i.operands[1]);
  for (int l = 0; l < w.size; ++l)
    if (l & width) std::swap(a[l], b[l ^ width]);
}

}  // namespace

const std::vector<operation> lane_operations = {
    {"v_readfirstlane_b32", read_first_lane},
    {"v_readlane_b32", read_lane},
    {"v_writelane_b32", write_lane},
    {"v_mbcnt_lo_u32_b32", count_below<false>},
    {"v_mbcnt_hi_u32_b32", count_below<true>},
    {"v_permlane16_b32", permute_row<false>},
    {"v_permlanex16_b32", permute_row<true>},
    {"v_permlane16_var_b32", permute_row_variable<false>},
    {"v_permlanex16_var_b32", permute_row_variable<true>},
    {"v_permlane64_b32", permute_halves},
    {"v_permlane32_swap_b32", swap_rows<32>},
    {"v_permlane16_swap_b32", swap_rows<16>},
};

}  // namespace emulation
