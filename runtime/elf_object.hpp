// A bounds-checked view of one ELF64 relocatable object: its sections, symbols and relocations as plain values. Never
// reads outside the span; throws error{corrupted} if the object is malformed. Internal to the loader. Any thread.
#pragma once

#include <elf.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace kiln {

class elf_object {
 public:
  // `bytes` must outlive the view. Throws error{unsupported} if the object is not for `machine` (EM_X86_64, ...).
  elf_object(std::span<const std::byte> bytes, unsigned machine);

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  std::string_view section_name(const Elf64_Shdr& section) const;
  std::span<const std::byte> contents(const Elf64_Shdr& section) const;  // empty for SHT_NOBITS

  std::size_t symbol_count() const { return symbol_count_; }
  Elf64_Sym symbol(std::size_t index) const;
  std::string_view symbol_name(const Elf64_Sym& symbol) const;

  // The entries of a SHT_RELA section.
  std::vector<Elf64_Rela> relocations(const Elf64_Shdr& section) const;

 private:
  std::string_view text(const Elf64_Shdr& table, std::size_t offset) const;
  std::span<const std::byte> bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::size_t names_ = 0, symbols_ = 0, symbol_names_ = 0;  // section indices; symbols_ is 0 without a symbol table
  std::size_t symbol_count_ = 0;
};

[[noreturn]] void corrupted_object(std::string_view what);

}  // namespace kiln
