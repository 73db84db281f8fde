#include "runtime/elf_object.hpp"

#include <cstring>
#include <string>

#include "ir/error.hpp"

namespace kiln {
namespace {

template <class T>
T read(std::span<const std::byte> bytes, std::uint64_t offset, std::string_view what) {
  T value;
  if (offset > bytes.size() || bytes.size() - offset < sizeof value) corrupted_object(what);
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

void corrupted_object(std::string_view what) {
  throw error(error_kind::corrupted,
              "native object: " + std::string(what) + "; build the kernel again (or clear the cache)");
}

elf_object::elf_object(std::span<const std::byte> bytes, unsigned machine) : bytes_(bytes) {
  auto header = read<Elf64_Ehdr>(bytes, 0, "it is shorter than an ELF header");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) corrupted_object("it has no ELF magic");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_ident[EI_VERSION] != EV_CURRENT)
    throw error(error_kind::unsupported, "native object: only 64-bit little-endian ELF can be loaded");
  if (header.e_type != ET_REL)
    throw error(error_kind::unsupported,
                "native object: ELF type " + std::to_string(header.e_type) + " is not a relocatable object");
  if (header.e_machine != machine)
    throw error(error_kind::unsupported, "native object: it is for ELF machine " + std::to_string(header.e_machine) +
                                             ", this host is " + std::to_string(machine));
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0) corrupted_object("it has no section headers");
  sections_.resize(header.e_shnum);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    if (header.e_shoff > bytes.size()) corrupted_object("its section headers lie outside it");
    sections_[i] =
        read<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr), "its section headers lie outside it");
    sum += contents(sections_[i]).size();  // also checks the extent
    // Sections of a valid object do not overlap. If they could, a small file could cause unbounded work.
    if (sum > bytes.size()) corrupted_object("its sections overlap");
  }
  names_ = header.e_shstrndx;
  if (names_ >= sections_.size() || sections_[names_].sh_type != SHT_STRTAB)
    corrupted_object("its table of section names is missing");
  for (std::size_t i = 1; i < sections_.size(); ++i) {
    if (sections_[i].sh_type != SHT_SYMTAB) continue;
    if (symbols_) corrupted_object("it has two symbol tables");
    symbols_ = i;
    symbol_names_ = sections_[i].sh_link;
    symbol_count_ = sections_[i].sh_size / sizeof(Elf64_Sym);
    if (sections_[i].sh_entsize != sizeof(Elf64_Sym) || sections_[i].sh_size % sizeof(Elf64_Sym))
      corrupted_object("its symbol table has entries of a wrong size");
    if (symbol_names_ >= sections_.size() || sections_[symbol_names_].sh_type != SHT_STRTAB)
      corrupted_object("its table of symbol names is missing");
  }
}

std::span<const std::byte> elf_object::contents(const Elf64_Shdr& section) const {
  if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) return {};
  if (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset)
    corrupted_object("a section lies outside it");
  return bytes_.subspan(section.sh_offset, section.sh_size);
}

std::string_view elf_object::text(const Elf64_Shdr& table, std::size_t offset) const {
  auto all = contents(table);
  if (offset >= all.size()) corrupted_object("a name lies outside its table");
  auto* begin = reinterpret_cast<const char*>(all.data()) + offset;
  const void* end = std::memchr(begin, 0, all.size() - offset);
  if (!end) corrupted_object("a name is not terminated");
  return {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
}

std::string_view elf_object::section_name(const Elf64_Shdr& section) const {
  return text(sections_[names_], section.sh_name);
}
std::string_view elf_object::symbol_name(const Elf64_Sym& symbol) const {
  return text(sections_[symbol_names_], symbol.st_name);
}

Elf64_Sym elf_object::symbol(std::size_t index) const {
  if (index >= symbol_count_) corrupted_object("a symbol's index lies outside the table");
  return read<Elf64_Sym>(contents(sections_[symbols_]), index * sizeof(Elf64_Sym), "a symbol lies outside the table");
}

std::vector<Elf64_Rela> elf_object::relocations(const Elf64_Shdr& section) const {
  auto all = contents(section);
  if (section.sh_entsize != sizeof(Elf64_Rela) || all.size() % sizeof(Elf64_Rela))
    corrupted_object("its relocations have a wrong size");
  std::vector<Elf64_Rela> result(all.size() / sizeof(Elf64_Rela));
  if (!all.empty()) std::memcpy(result.data(), all.data(), all.size());
  return result;
}

}  // namespace kiln
