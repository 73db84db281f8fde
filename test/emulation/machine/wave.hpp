// The state of one wave of an emulated AMD GPU, and decoded instructions.
//
// An instruction is what decode.py makes of a line of llvm-objdump. `run` executes one instruction for all lanes of a
// wave. A wave owns its registers; memory is that of this process, so addresses of kernels are addresses here. One
// thread uses a wave at a time.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace emulation {

constexpr int most_lanes = 64;

enum class operand_kind : std::uint8_t { none, vector, accumulator, scalar, constant };

// Which part of a 32-bit register an operand is: all of it, a half, or a byte (SDWA and 16-bit registers of RDNA).
enum class part : std::uint8_t { whole, low_half, high_half, byte_0, byte_1, byte_2, byte_3 };

// Bits of operand::modifiers.
constexpr std::uint8_t negated = 1, absolute = 2, sign_extended = 4;

struct operand {
  operand_kind kind;
  std::uint8_t registers;  // how many 32-bit registers
  part selected;
  std::uint8_t modifiers;
  std::uint32_t index;  // of the first register
  std::uint64_t value;  // of a constant, extended to 64 bits
};

// Scalar registers with names have the numbers of the encoding.
constexpr std::uint32_t vcc = 106, m0 = 124, null_register = 125, exec = 126, scalar_registers = 128;

enum class lane_move : std::uint8_t { none, dpp, dpp8 };

struct instruction {
  void (*run)(struct wave&, const instruction&);
  std::uint64_t address;  // of the code in this process
  std::int32_t target;    // index of the instruction that a branch goes to
  std::int32_t offset, second_offset;
  std::uint32_t bytes;  // length of the encoding
  // Bit n belongs to source n.
  std::uint8_t select_low, select_high, negate_low, negate_high;
  lane_move move;
  std::uint8_t moved;  // the operand that `move` applies to
  std::uint8_t row_mask, bank_mask;
  bool zero_outside, fetch_inactive;  // DPP: bound_ctrl, fi
  bool returns, clamps, preserves;    // atomics; clamp; SDWA's UNUSED_PRESERVE, d16 loads
  std::uint8_t output_factor;         // 0: none, 1: times 2, 2: times 4, 3: divided by 2
  std::uint8_t operands_given;
  std::uint32_t control;  // of DPP, a lane selection or a truth table
  std::array<operand, 6> operands;
};

// Thrown for what a kernel must not do, and for what is not emulated. The message names it.
struct refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using lanes = std::array<std::uint32_t, most_lanes>;

struct wave {
  alignas(64) std::array<lanes, 512> vectors;  // v0 to v255, then a0 to a255
  std::array<std::uint32_t, scalar_registers> scalars;
  bool scc, at_barrier, ended;
  int size;                              // lanes
  int number;                            // in the workgroup
  std::uint32_t next;                    // index of the next instruction
  std::uint64_t scratch, scratch_bytes;  // private memory: address of lane 0's, bytes of a lane
  struct workgroup* group;

  std::uint64_t pair(std::uint32_t index) const {
    return scalars[index] | static_cast<std::uint64_t>(scalars[index + 1]) << 32;
  }
  void set_pair(std::uint32_t index, std::uint64_t value) {
    scalars[index] = static_cast<std::uint32_t>(value);
    scalars[index + 1] = static_cast<std::uint32_t>(value >> 32);
  }
  std::uint64_t all() const { return size == 64 ? ~std::uint64_t{0} : 0xFFFFFFFF; }
  // A mask of lanes in scalar registers: a pair of them on machines with 64 lanes.
  std::uint64_t mask(std::uint32_t index) const { return size == 64 ? pair(index) : scalars[index]; }
  void set_mask(std::uint32_t index, std::uint64_t value) {
    if (size == 64) set_pair(index, value);
    else scalars[index] = static_cast<std::uint32_t>(value);
  }
  std::uint64_t active() const { return mask(exec); }
  bool is_active(int lane) const { return active() >> lane & 1; }
  lanes& vector(const operand& o) { return vectors[o.index + (o.kind == operand_kind::accumulator ? 256 : 0)]; }
  lanes& vector(const operand& o, std::uint32_t more) {
    return vectors[o.index + more + (o.kind == operand_kind::accumulator ? 256 : 0)];
  }
};

// Scalar operands. 64-bit ones are pairs of registers.
inline std::uint32_t scalar(const wave& w, const operand& o) {
  if (o.kind == operand_kind::constant) return static_cast<std::uint32_t>(o.value);
  if (o.kind == operand_kind::vector) return w.vectors[o.index][0];
  return o.index == null_register ? 0 : w.scalars[o.index];
}
inline std::uint64_t scalar_pair(const wave& w, const operand& o) {
  if (o.kind == operand_kind::constant) return o.value;
  return o.index == null_register ? 0 : w.pair(o.index);
}
inline std::uint64_t scalar_mask(const wave& w, const operand& o) {
  if (o.kind == operand_kind::constant) return o.value & w.all();
  return w.mask(o.index);
}
inline void set_scalar(wave& w, const operand& o, std::uint32_t value) {
  if (o.index != null_register) w.scalars[o.index] = value;
}
inline void set_scalar_pair(wave& w, const operand& o, std::uint64_t value) {
  if (o.index != null_register) w.set_pair(o.index, value);
}
inline void set_scalar_mask(wave& w, const operand& o, std::uint64_t value) {
  if (o.index != null_register) w.set_mask(o.index, value);
}

// The lane from which `lane` takes its first source under DPP, or -1 if there is none.
int source_lane(const wave& w, const instruction& i, int lane);

// Whether DPP lets `lane` write its result.
bool moves_into(const wave& w, const instruction& i, int lane);

// Writes values of lanes that are active (and that DPP does not switch off).
void write_lanes(wave& w, const instruction& i, const operand& to, std::uint32_t more, const lanes& values);

// 32 bits of a source in all lanes, with DPP (first vector source) and SDWA's or RDNA's selection of a part, without
// modifiers of numbers.
void read_lanes(const wave& w, const instruction& i, int source, std::uint32_t more, lanes& values);

// Names of operations and what executes them.
struct operation {
  const char* name;
  void (*run)(wave&, const instruction&);
};

}  // namespace emulation
