#include "amx_emulator.hpp"

#if defined(__x86_64__)

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace kiln::test {
namespace {

constexpr int tiles = 8, most_rows = 16, row_bytes = 64;

struct tile_state {
  bool configured = false;
  std::array<int, tiles> rows{}, bytes{};  // of a row
  std::array<std::array<std::uint8_t, most_rows * row_bytes>, tiles> data{};
  std::int64_t products = 0;
};
thread_local tile_state state;
struct sigaction before;

// An instruction with a VEX prefix of three bytes, map 0F38 and a ModRM byte.
struct instruction {
  int prefix = 0, opcode = 0, mode = 0, reg = 0, rm = 0, second = 0;  // `second`: the register in VEX.vvvv
  int length = 5;
  std::uint8_t* address = nullptr;  // of a memory operand
};

std::uint64_t general_register(const greg_t* registers, int number) {
  static constexpr int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<std::uint64_t>(registers[order[number]]);
}

// `stride` is set to the index register of a memory operand with a SIB byte, without its scale's product being part of
// the address: loads and stores of tiles add it for each row.
std::optional<instruction> decode(const std::uint8_t* code, const greg_t* registers, std::int64_t& stride) {
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2) return std::nullopt;
  instruction i;
  i.prefix = code[2] & 3, i.opcode = code[3], i.second = ~code[2] >> 3 & 15;
  const int high_index = code[1] & 0x40 ? 0 : 8, high_base = code[1] & 0x20 ? 0 : 8;
  i.mode = code[4] >> 6, i.reg = code[4] >> 3 & 7, i.rm = code[4] & 7;
  if (i.mode == 3) return i;
  std::uint64_t address = 0;
  if (i.rm == 4) {
    const int scale = code[5] >> 6, index = (code[5] >> 3 & 7) + high_index, base = (code[5] & 7) + high_base;
    i.length = 6;
    if (index != 4) stride = static_cast<std::int64_t>(general_register(registers, index) << scale);
    if ((code[5] & 7) == 5 && i.mode == 0) {
      std::int32_t offset;
      std::memcpy(&offset, code + i.length, 4);
      i.length += 4;
      i.address = reinterpret_cast<std::uint8_t*>(static_cast<std::int64_t>(offset));
      return i;
    }
    address = general_register(registers, base);
  } else if (i.rm == 5 && i.mode == 0) {
    std::int32_t offset;
    std::memcpy(&offset, code + i.length, 4);
    i.length += 4;
    i.address = const_cast<std::uint8_t*>(code) + i.length + offset;
    return i;
  } else {
    address = general_register(registers, i.rm + high_base);
  }
  if (i.mode == 1) {
    address += static_cast<std::uint64_t>(static_cast<std::int8_t>(code[i.length]));
    i.length += 1;
  } else if (i.mode == 2) {
    std::int32_t offset;
    std::memcpy(&offset, code + i.length, 4);
    i.length += 4;
    address += static_cast<std::uint64_t>(static_cast<std::int64_t>(offset));
  }
  i.address = reinterpret_cast<std::uint8_t*>(address);
  return i;
}

bool configure(const std::uint8_t* from) {
  if (from[0] != 1 || from[1] != 0) return false;
  state.configured = true;
  for (int t = 0; t < tiles; ++t) {
    state.bytes[t] = from[16 + 2 * t] + 256 * from[17 + 2 * t];
    state.rows[t] = from[48 + t];
    if (state.rows[t] > most_rows || state.bytes[t] > row_bytes || (state.rows[t] == 0) != (state.bytes[t] == 0))
      return false;
    state.data[t].fill(0);
  }
  return true;
}

// A register without rows or columns stops the processor.
bool is_usable(int tile) { return state.configured && state.rows[tile] > 0 && state.bytes[tile] > 0; }

float normal(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; }

float bf16_at(const std::uint8_t* at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, 2);
  return normal(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

int byte_at(const std::uint8_t* at, bool is_signed) { return is_signed ? static_cast<std::int8_t>(*at) : *at; }

// sums[row, column] += the products of four bytes or two bf16 in each lane of left[row, lane] and right[lane, column].
bool multiply(int sums, int left, int right, int prefix, bool floats) {
  if (!is_usable(sums) || !is_usable(left) || !is_usable(right)) return false;
  if (state.rows[sums] != state.rows[left] || state.bytes[sums] != state.bytes[right] ||
      state.bytes[left] != 4 * state.rows[right])
    return false;
  // NP: u8 × u8, 66: u8 × i8, F3: i8 × u8, F2: i8 × i8.
  const bool left_signed = prefix >= 2, right_signed = prefix == 1 || prefix == 3;
  for (int row = 0; row < state.rows[sums]; ++row)
    for (int column = 0; column < state.bytes[sums] / 4; ++column) {
      std::uint8_t* sum = &state.data[sums][row * row_bytes + column * 4];
      float low = 0, high = 0;
      std::int32_t whole = 0;
      for (int lane = 0; lane < state.rows[right]; ++lane) {
        const std::uint8_t *a = &state.data[left][row * row_bytes + lane * 4],
                           *b = &state.data[right][lane * row_bytes + column * 4];
        if (floats) {
          low = normal(std::fma(bf16_at(a), bf16_at(b), low));
          high = normal(std::fma(bf16_at(a + 2), bf16_at(b + 2), high));
        } else {
          for (int i = 0; i < 4; ++i) whole += byte_at(a + i, left_signed) * byte_at(b + i, right_signed);
        }
      }
      if (floats) {
        float before;
        std::memcpy(&before, sum, 4);
        const float after = normal(normal(before) + normal(low + high));
        std::memcpy(sum, &after, 4);
      } else {
        std::uint32_t total;
        std::memcpy(&total, sum, 4);
        total += static_cast<std::uint32_t>(whole);
        std::memcpy(sum, &total, 4);
      }
    }
  ++state.products;
  return true;
}

bool execute(const instruction& i, std::int64_t stride) {
  enum prefixes { none = 0, p66 = 1, f3 = 2, f2 = 3 };
  if (i.opcode == 0x49 && i.mode != 3 && i.prefix == none) return configure(i.address);
  if (i.opcode == 0x49 && i.mode == 3 && i.prefix == none) {
    state.configured = false;
    return true;
  }
  if (i.opcode == 0x49 && i.mode == 3 && i.prefix == f2) {
    if (!is_usable(i.reg)) return false;
    state.data[i.reg].fill(0);
    return true;
  }
  if (i.opcode == 0x4b && i.mode != 3) {
    if (!is_usable(i.reg)) return false;
    for (int row = 0; row < state.rows[i.reg]; ++row) {
      std::uint8_t *memory = i.address + row * stride, *tile = &state.data[i.reg][row * row_bytes];
      const auto bytes = static_cast<std::size_t>(state.bytes[i.reg]);
      if (i.prefix == f3) std::memcpy(memory, tile, bytes);
      else std::memcpy(tile, memory, bytes);
    }
    return true;
  }
  if (i.opcode == 0x5e && i.mode == 3) return multiply(i.reg, i.rm, i.second, i.prefix, false);
  if (i.opcode == 0x5c && i.mode == 3 && i.prefix == f3) return multiply(i.reg, i.rm, i.second, i.prefix, true);
  return false;
}

void handle(int signal, siginfo_t*, void* context) {
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* code = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
  std::int64_t stride = 0;
  const auto found = decode(code, registers, stride);
  if (found && execute(*found, stride)) registers[REG_RIP] += found->length;
  else sigaction(signal, &before, nullptr);  // the instruction stops the program again, now without this handler
}

}  // namespace

amx_emulator::amx_emulator() {
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &before);
}

amx_emulator::~amx_emulator() { sigaction(SIGILL, &before, nullptr); }

std::int64_t amx_emulator::products() { return state.products; }
bool amx_emulator::is_configured() { return state.configured; }

}  // namespace kiln::test

#else

namespace kiln::test {
amx_emulator::amx_emulator() = default;
amx_emulator::~amx_emulator() = default;
std::int64_t amx_emulator::products() { return 0; }
bool amx_emulator::is_configured() { return false; }
}  // namespace kiln::test

#endif
