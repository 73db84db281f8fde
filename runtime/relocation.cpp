#include "runtime/relocation.hpp"

#include <cstring>

#include "ir/error.hpp"

namespace kiln {
namespace {

constexpr unsigned code_4_gotpcrelx = 43;  // APX instructions; missing in Debian's <elf.h>
constexpr relocation_kind relocation_kinds[] = {
    {EM_X86_64, R_X86_64_NONE, "R_X86_64_NONE", formula::nothing, field::none},
    {EM_X86_64, R_X86_64_64, "R_X86_64_64", formula::s_plus_a, field::word64},
    {EM_X86_64, R_X86_64_32, "R_X86_64_32", formula::s_plus_a, field::unsigned32},
    {EM_X86_64, R_X86_64_32S, "R_X86_64_32S", formula::s_plus_a, field::signed32},
    {EM_X86_64, R_X86_64_PC32, "R_X86_64_PC32", formula::s_plus_a_minus_p, field::signed32},
    {EM_X86_64, R_X86_64_PC64, "R_X86_64_PC64", formula::s_plus_a_minus_p, field::word64},
    {EM_X86_64, R_X86_64_PLT32, "R_X86_64_PLT32", formula::l_plus_a_minus_p, field::signed32},
    {EM_X86_64, R_X86_64_GOTPCREL, "R_X86_64_GOTPCREL", formula::g_plus_a_minus_p, field::signed32},
    {EM_X86_64, R_X86_64_GOTPCRELX, "R_X86_64_GOTPCRELX", formula::g_plus_a_minus_p, field::signed32},
    {EM_X86_64, R_X86_64_REX_GOTPCRELX, "R_X86_64_REX_GOTPCRELX", formula::g_plus_a_minus_p, field::signed32},
    {EM_X86_64, code_4_gotpcrelx, "R_X86_64_CODE_4_GOTPCRELX", formula::g_plus_a_minus_p, field::signed32},
    {EM_AARCH64, R_AARCH64_NONE, "R_AARCH64_NONE", formula::nothing, field::none},
    {EM_AARCH64, R_AARCH64_ABS64, "R_AARCH64_ABS64", formula::s_plus_a, field::word64},
    {EM_AARCH64, R_AARCH64_PREL64, "R_AARCH64_PREL64", formula::s_plus_a_minus_p, field::word64},
    {EM_AARCH64, R_AARCH64_PREL32, "R_AARCH64_PREL32", formula::s_plus_a_minus_p, field::signed32},
    {EM_AARCH64, R_AARCH64_CALL26, "R_AARCH64_CALL26", formula::l_plus_a_minus_p, field::branch26},
    {EM_AARCH64, R_AARCH64_JUMP26, "R_AARCH64_JUMP26", formula::l_plus_a_minus_p, field::branch26},
    {EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, "R_AARCH64_ADR_PREL_PG_HI21", formula::page_of_s_plus_a_minus_page_of_p,
     field::page21},
    {EM_AARCH64, R_AARCH64_ADD_ABS_LO12_NC, "R_AARCH64_ADD_ABS_LO12_NC", formula::s_plus_a, field::low12},
    {EM_AARCH64, R_AARCH64_LDST8_ABS_LO12_NC, "R_AARCH64_LDST8_ABS_LO12_NC", formula::s_plus_a, field::low12},
    {EM_AARCH64, R_AARCH64_LDST16_ABS_LO12_NC, "R_AARCH64_LDST16_ABS_LO12_NC", formula::s_plus_a, field::low12, 1},
    {EM_AARCH64, R_AARCH64_LDST32_ABS_LO12_NC, "R_AARCH64_LDST32_ABS_LO12_NC", formula::s_plus_a, field::low12, 2},
    {EM_AARCH64, R_AARCH64_LDST64_ABS_LO12_NC, "R_AARCH64_LDST64_ABS_LO12_NC", formula::s_plus_a, field::low12, 3},
    {EM_AARCH64, R_AARCH64_LDST128_ABS_LO12_NC, "R_AARCH64_LDST128_ABS_LO12_NC", formula::s_plus_a, field::low12, 4},
    {EM_AARCH64, R_AARCH64_ADR_GOT_PAGE, "R_AARCH64_ADR_GOT_PAGE", formula::page_of_g_plus_a_minus_page_of_p,
     field::page21},
    {EM_AARCH64, R_AARCH64_LD64_GOT_LO12_NC, "R_AARCH64_LD64_GOT_LO12_NC", formula::g_plus_a, field::low12, 3},
};

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// Replaces `bits` bits of an instruction from bit `first` on.
void insert(std::byte* at, std::uint64_t value, unsigned bits, unsigned first) {
  std::uint32_t code = 0;
  std::memcpy(&code, at, sizeof code);
  const std::uint32_t mask = ((1u << bits) - 1) << first;
  store(at, (code & ~mask) | (static_cast<std::uint32_t>(value << first) & mask));
}

}  // namespace

void unsupported_object(const std::string& what) { throw error(error_kind::unsupported, "native object: " + what); }

const relocation_kind& find_relocation(unsigned type) {
  for (const relocation_kind& kind : relocation_kinds)
    if (kind.machine == host_machine && kind.type == type) return kind;
  unsupported_object("relocation type " + std::to_string(type) + " of ELF machine " + std::to_string(host_machine) +
                     " (is the object position independent, small code model?)");
}

void patch(const relocation_kind& kind, std::byte* at, std::uint64_t value) {
  auto as_signed = static_cast<std::int64_t>(value);
  auto check = [&](bool fits) {
    if (!fits)
      unsupported_object(std::string(kind.name) +
                         " does not reach its target; compile position independent code, small code model");
  };
  switch (kind.target) {
    case field::none: return;
    case field::word64: return store(at, value);
    case field::signed32:
      check(as_signed == static_cast<std::int32_t>(as_signed));
      return store(at, static_cast<std::int32_t>(as_signed));
    case field::unsigned32:
      check(value == static_cast<std::uint32_t>(value));
      return store(at, static_cast<std::uint32_t>(value));
    case field::branch26:
      check(value % 4 == 0 && as_signed >= -(std::int64_t{1} << 27) && as_signed < std::int64_t{1} << 27);
      return insert(at, value >> 2, 26, 0);
    case field::page21:
      check(as_signed >= -(std::int64_t{1} << 32) && as_signed < std::int64_t{1} << 32);
      insert(at, value >> 12, 2, 29);
      return insert(at, value >> 14, 19, 5);
    case field::low12:
      check((value & ((1u << kind.scale) - 1)) == 0);
      return insert(at, (value & 0xfff) >> kind.scale, 12, 10);
  }
}

// x86-64: jmp *got(%rip), then traps. Arm: adrp x16, got; ldr x16, [x16, got]; br x16; brk 0.
void write_stub(std::byte* at, std::uint64_t address, std::uint64_t got) {
  if constexpr (host_machine == EM_AARCH64) {
    for (std::uint32_t code : {0x90000010u, 0xf9400210u, 0xd61f0200u, 0xd4200000u}) store(at, code), at += 4;
    patch({EM_AARCH64, 0, "call stub", formula::nothing, field::page21}, at - 16, page_of(got) - page_of(address));
    return patch({EM_AARCH64, 0, "call stub", formula::nothing, field::low12, 3}, at - 12, got);
  }
  std::memset(at, 0xCC, stub_bytes);
  at[0] = std::byte{0xFF};
  at[1] = std::byte{0x25};
  store(at + 2, static_cast<std::int32_t>(got - (address + 6)));
}

}  // namespace kiln
