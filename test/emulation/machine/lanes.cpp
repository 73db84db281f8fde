// Reading and writing of vector registers: data-parallel primitives (DPP), selection of bytes and halves (SDWA, 16-bit
// registers).
#include "wave.hpp"

namespace emulation {

namespace {

int quad(int lane, std::uint32_t control) { return (lane & ~3) + static_cast<int>(control >> (2 * (lane & 3)) & 3); }

// AMD's ISA documents, "Data Parallel Processing": control 0x000-0x0FF is quad_perm, then shifts, rotations, mirrors
// and broadcasts of rows of 16 lanes.
int dpp_lane(const wave& w, std::uint32_t control, int lane) {
  const int row = lane & ~15, place = lane & 15, n = static_cast<int>(control & 15);
  if (control <= 0xFF) return quad(lane, control);
  if (control >= 0x101 && control <= 0x10F) return place + n < 16 ? lane + n : -1;
  if (control >= 0x111 && control <= 0x11F) return place >= n ? lane - n : -1;
  if (control >= 0x121 && control <= 0x12F) return row + ((place - n) & 15);
  if (control == 0x140) return row + 15 - place;
  if (control == 0x141) return row + (place & 8) + 7 - (place & 7);
  if (w.size == 64) {
    if (control == 0x130) return lane < 63 ? lane + 1 : -1;
    if (control == 0x134) return (lane + 1) & 63;
    if (control == 0x138) return lane - 1;
    if (control == 0x13C) return (lane - 1) & 63;
    if (control == 0x142) return row - 1;
    if (control == 0x143) return lane >= 32 ? 31 : -1;
  }
  if (control >= 0x150 && control <= 0x15F) return row + n;
  if (control >= 0x160 && control <= 0x16F && w.size == 32) return row + (place ^ n);
  throw refusal("DPP control " + std::to_string(control));
}

std::uint32_t select(std::uint32_t x, part selected, bool extended) {
  switch (selected) {
    case part::whole: return x;
    case part::low_half:
    case part::high_half:
      x = selected == part::low_half ? x & 0xFFFF : x >> 16;
      return extended ? static_cast<std::uint32_t>(static_cast<std::int16_t>(x)) : x;
    default:
      x = x >> (8 * (static_cast<int>(selected) - static_cast<int>(part::byte_0))) & 0xFF;
      return extended ? static_cast<std::uint32_t>(static_cast<std::int8_t>(x)) : x;
  }
}

std::uint32_t place(std::uint32_t old, std::uint32_t x, part selected, bool preserved) {
  std::uint32_t mask = 0xFFFFFFFF;
  int shift = 0;
  if (selected == part::low_half) mask = 0xFFFF;
  else if (selected == part::high_half) mask = 0xFFFF0000, shift = 16;
  else if (selected != part::whole) {
    shift = 8 * (static_cast<int>(selected) - static_cast<int>(part::byte_0));
    mask = 0xFFu << shift;
  }
  return ((x << shift) & mask) | (preserved ? old & ~mask : 0);
}

}  // namespace

int source_lane(const wave& w, const instruction& i, int lane) {
  if (i.move == lane_move::none) return lane;
  int from = i.move == lane_move::dpp8 ? (lane & ~7) + static_cast<int>(i.control >> (3 * (lane & 7)) & 7)
                                       : dpp_lane(w, i.control, lane);
  return from >= 0 && (i.fetch_inactive || w.is_active(from)) ? from : -1;
}

bool moves_into(const wave& w, const instruction& i, int lane) {
  if (i.move != lane_move::dpp) return true;
  if (!(i.row_mask >> (lane >> 4) & 1) || !(i.bank_mask >> (lane >> 2 & 3) & 1)) return false;
  return i.zero_outside || source_lane(w, i, lane) >= 0;
}

void write_lanes(wave& w, const instruction& i, const operand& to, std::uint32_t more, const lanes& values) {
  lanes& out = w.vector(to, more);
  std::uint64_t on = w.active();
  if (i.move == lane_move::dpp)
    for (int l = 0; l < w.size; ++l)
      if (!moves_into(w, i, l)) on &= ~(std::uint64_t{1} << l);
  if (to.selected == part::whole) {
    if (on == ~std::uint64_t{0}) {
      out = values;
      return;
    }
    for (int l = 0; l < most_lanes; ++l) out[l] = on >> l & 1 ? values[l] : out[l];
    return;
  }
  for (int l = 0; l < w.size; ++l)
    if (on >> l & 1) out[l] = place(out[l], values[l], to.selected, i.preserves);
}

void read_lanes(const wave& w, const instruction& i, int source, std::uint32_t more, lanes& values) {
  const operand& o = i.operands[source];
  if (o.kind == operand_kind::vector || o.kind == operand_kind::accumulator) {
    const lanes& from = w.vectors[o.index + more + (o.kind == operand_kind::accumulator ? 256 : 0)];
    if (i.move != lane_move::none && source == i.moved) {
      for (int l = 0; l < most_lanes; ++l) {
        int lane = l < w.size ? source_lane(w, i, l) : -1;
        values[l] = lane >= 0 ? from[lane] : 0;
      }
    } else {
      values = from;
    }
  } else {
    std::uint32_t x;
    if (o.kind == operand_kind::constant) x = static_cast<std::uint32_t>(more ? o.value >> 32 : o.value);
    else x = o.index == null_register ? 0 : w.scalars[o.index + more];
    values.fill(x);
  }
  if (o.selected != part::whole)
    for (auto& x : values) x = select(x, o.selected, o.modifiers & sign_extended);
}

}  // namespace emulation
