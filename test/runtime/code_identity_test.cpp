#include "runtime/code_identity.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "objects.hpp"
#include "runtime/relocation.hpp"

namespace kiln::testing {
namespace {

std::optional<content_hash> identity_of(std::span<const std::byte> object, std::string_view function) {
  return code_identity(elf_object(object, host_machine), function);
}
std::optional<content_hash> identity_of(const std::string& object, std::string_view function) {
  return identity_of(read_object(object), function);
}

TEST(code_identity, is_of_the_code_and_not_of_what_surrounds_it) {
  auto pack = identity_of("packing", "pack");
  ASSERT_TRUE(pack);
  // The same function in another kernel.
  EXPECT_EQ(pack, identity_of("packing_main", "pack"));
  EXPECT_EQ(pack, identity_of("packing_name", "pack_of_another_kernel"));
  EXPECT_NE(pack, identity_of("packing_step", "pack"));
  EXPECT_NE(pack, identity_of("packing", "pack_scaled"));
}

TEST(code_identity, covers_constants_and_names_that_the_code_refers_to) {
  auto scaled = identity_of("packing", "pack_scaled"), calling = identity_of("packing", "pack_calling");
  ASSERT_TRUE(scaled && calling);
  EXPECT_EQ(scaled, identity_of("packing_main", "pack_scaled"));
  EXPECT_NE(scaled,
            // The code is the same, but a number in its table differs.
            identity_of("packing_number", "pack_scaled"));
  EXPECT_EQ(identity_of("packing", "pack"), identity_of("packing_number", "pack"));
  // The other object calls erff by another name.
  EXPECT_NE(calling, identity_of("packing_calls", "pack_calling"));
}

// The object with its local symbol of the source's name made a symbol of no size in the code, as Arm's objects have
// them.
std::vector<std::byte> with_symbol_in_code(std::string_view name) {
  std::vector<std::byte> bytes = read_object("packing");
  auto at = [&]<class Field>(std::uint64_t offset, Field) { return reinterpret_cast<Field*>(bytes.data() + offset); };
  const auto header = *at(0, Elf64_Ehdr{});
  std::span sections(at(header.e_shoff, Elf64_Shdr{}), header.e_shnum);
  const auto table = std::ranges::find(sections, Elf64_Word{SHT_SYMTAB}, &Elf64_Shdr::sh_type);
  std::span symbols(at(table->sh_offset, Elf64_Sym{}), table->sh_size / sizeof(Elf64_Sym));
  auto of_type = [&](unsigned type) {
    return std::ranges::find(symbols, type, [](const Elf64_Sym& s) { return ELF64_ST_TYPE(s.st_info); });
  };
  auto file = of_type(STT_FILE);
  file->st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE);
  file->st_shndx = of_type(STT_FUNC)->st_shndx;
  std::memcpy(at(sections[table->sh_link].sh_offset + file->st_name, char{}), name.data(), name.size() + 1);
  return bytes;
}

TEST(code_identity, mapping_symbols_of_arm_are_no_code) {
  const auto pack = identity_of("packing", "pack");
  ASSERT_TRUE(pack);
  for (std::string_view name : {"$x", "$d", "$x.1"})
    EXPECT_EQ(identity_of(with_symbol_in_code(name), "pack"), pack) << name;
  EXPECT_FALSE(identity_of(with_symbol_in_code("local"), "pack"));
}

TEST(code_identity, is_missing_where_the_code_cannot_be_told_apart) {
  EXPECT_FALSE(identity_of("packing", "no_such_function"));
  // It reads memory that is written.
  EXPECT_FALSE(identity_of("packing", "pack_counting"));
  // A call of a local function has no relocation.
  EXPECT_FALSE(identity_of("packing_local", "pack"));
}

// Changes every byte of the section: the identity must change if, and only if, the byte belongs to the function.
TEST(code_identity, every_byte_of_the_function_counts) {
  const auto bytes = read_object("packing");
  const elf_object object(bytes, host_machine);
  std::vector<Elf64_Sym> functions;
  for (std::size_t i = 0; i < object.symbol_count(); ++i)
    if (Elf64_Sym s = object.symbol(i); ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx != SHN_UNDEF)
      functions.push_back(s);
  ASSERT_EQ(functions.size(), 5u);
  std::size_t changes = 0;
  for (const Elf64_Sym& function : functions) {
    const auto name = std::string(object.symbol_name(function));
    const auto identity = code_identity(object, name);
    if (!identity) continue;
    const Elf64_Shdr& section = object.sections()[function.st_shndx];
    for (std::uint64_t at = 0; at < section.sh_size; ++at) {
      auto changed = bytes;
      changed[section.sh_offset + at] ^= std::byte{0x10};
      const bool inside = at >= function.st_value && at < function.st_value + function.st_size;
      EXPECT_EQ(identity_of(changed, name) != identity, inside) << name << " byte " << at;
      changes += inside;
    }
  }
  EXPECT_GT(changes, 100u);
}

}  // namespace
}  // namespace kiln::testing
