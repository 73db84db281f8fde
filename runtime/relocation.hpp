// The relocations of native objects: a table of what LLVM writes for x86-64 and 64-bit Arm, and the patches. Internal
// to the loader. Throws error{unsupported}. Any thread.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

#if defined(__aarch64__)
inline constexpr unsigned host_machine = EM_AARCH64;
#else
inline constexpr unsigned host_machine = EM_X86_64;
#endif

// Letters as in the psABI: S symbol, A addend, P place, L call stub of a function outside the image, G entry in the
// global offset table. A page of the Arm formulas has 4096 bytes, whatever the system's pages have.
enum class formula {
  nothing,
  s_plus_a,
  s_plus_a_minus_p,
  l_plus_a_minus_p,
  g_plus_a_minus_p,
  page_of_s_plus_a_minus_page_of_p,
  g_plus_a,
  page_of_g_plus_a_minus_page_of_p
};
// The last three are immediates of Arm instructions: b and bl, adrp, and the low 12 bits of add, ldr and str.
enum class field { none, word64, signed32, unsigned32, branch26, page21, low12 };

struct relocation_kind {
  unsigned machine, type;
  std::string_view name;
  formula value;
  field target;
  unsigned scale = 0;  // of low12: log2 of the bytes that are loaded or stored
  bool uses_got() const {
    return value == formula::g_plus_a_minus_p || value == formula::g_plus_a ||
           value == formula::page_of_g_plus_a_minus_page_of_p;
  }
  bool may_call() const {
    return (target == field::signed32 || target == field::branch26) &&
           (value == formula::s_plus_a_minus_p || value == formula::l_plus_a_minus_p);
  }
};
// The address in an entry of the global offset table.
inline constexpr relocation_kind got_entry{host_machine, 0, "GOT", formula::s_plus_a, field::word64};

constexpr std::uint64_t page_of(std::uint64_t address) { return address & ~std::uint64_t{0xfff}; }

// A call stub jumps through the global offset table, because external functions are out of reach of a direct call.
inline constexpr std::size_t stub_bytes = 16;

[[noreturn]] void unsupported_object(const std::string& what);

// Returns the kind of this machine's relocation type.
const relocation_kind& find_relocation(unsigned type);

// Writes the value of a relocation's formula to its place.
void patch(const relocation_kind& kind, std::byte* at, std::uint64_t value);

// Writes the stub at `address`, which jumps to what the entry at `got` of the global offset table says.
void write_stub(std::byte* at, std::uint64_t address, std::uint64_t got);

}  // namespace kiln
