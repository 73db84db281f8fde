#include "runtime/code_identity.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace kiln {
namespace {

struct piece {
  std::size_t section;
  std::uint64_t begin, end;
  friend bool operator==(const piece&, const piece&) = default;
};

bool is_function(const Elf64_Sym& symbol) {
  return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
}

// Arm objects mark where code and data begin with local symbols of these names, which have no size.
bool is_mapping_symbol(const elf_object& object, const Elf64_Sym& symbol) {
  if (ELF64_ST_TYPE(symbol.st_info) != STT_NOTYPE || ELF64_ST_BIND(symbol.st_info) != STB_LOCAL) return false;
  const std::string_view name = object.symbol_name(symbol);
  return name == "$x" || name == "$d" || name.starts_with("$x.") || name.starts_with("$d.");
}

// Bytes between two functions count as padding only up to the section's alignment, and at most this many.
constexpr std::uint64_t most_padding = 64;

class identity {
 public:
  explicit identity(const elf_object& object) : object_(object) {}

  std::optional<content_hash> of(std::string_view name) {
    std::optional<piece> function;
    for (std::size_t i = 0; i < object_.symbol_count(); ++i) {
      const Elf64_Sym symbol = object_.symbol(i);
      if (is_function(symbol) && object_.symbol_name(symbol) == name) function = piece_of(symbol);
    }
    if (!function) return std::nullopt;
    hasher_.add("kiln code identity 1");
    pieces_.push_back(*function);
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      if (!add(pieces_[i])) return std::nullopt;
    return hasher_.finish();
  }

 private:
  const Elf64_Shdr* section(std::size_t index) const {
    return index < object_.sections().size() ? &object_.sections()[index] : nullptr;
  }

  // The function, provided that all code in its section belongs to exported functions. Calls between exported functions
  // have relocations; calls to local functions have none.
  std::optional<piece> piece_of(const Elf64_Sym& symbol) const {
    const Elf64_Shdr* in = section(symbol.st_shndx);
    if (!in || symbol.st_size == 0 || symbol.st_value > in->sh_size || in->sh_size - symbol.st_value < symbol.st_size)
      return std::nullopt;
    std::vector<piece> functions;
    for (std::size_t i = 0; i < object_.symbol_count(); ++i) {
      const Elf64_Sym other = object_.symbol(i);
      const auto type = ELF64_ST_TYPE(other.st_info);
      if (other.st_shndx != symbol.st_shndx || type == STT_SECTION || type == STT_FILE ||
          is_mapping_symbol(object_, other))
        continue;
      if (!is_function(other) || ELF64_ST_BIND(other.st_info) == STB_LOCAL) return std::nullopt;
      functions.push_back({other.st_shndx, other.st_value, other.st_value + other.st_size});
    }
    std::ranges::sort(functions, {}, &piece::begin);
    const std::uint64_t alignment = std::clamp<std::uint64_t>(in->sh_addralign, 1, most_padding);
    std::uint64_t covered = 0;
    for (const piece& each : functions) {
      if (each.begin < covered || each.begin - covered >= alignment) return std::nullopt;
      covered = each.end;
    }
    if (in->sh_size < covered || in->sh_size - covered >= alignment) return std::nullopt;
    return piece{symbol.st_shndx, symbol.st_value, symbol.st_value + symbol.st_size};
  }

  // The piece that a relocation's symbol refers to: a single function, or the whole section of a constant.
  std::optional<piece> referred(const Elf64_Sym& symbol) const {
    const Elf64_Shdr* in = section(symbol.st_shndx);
    if (!in || !(in->sh_flags & SHF_ALLOC)) return std::nullopt;
    if (in->sh_flags & SHF_EXECINSTR) return is_function(symbol) ? piece_of(symbol) : std::nullopt;
    const bool written = (in->sh_flags & SHF_WRITE) && !object_.section_name(*in).starts_with(".data.rel.ro");
    return written || in->sh_type != SHT_PROGBITS ? std::nullopt
                                                  : std::optional(piece{symbol.st_shndx, 0, in->sh_size});
  }

  bool add(const piece at) {
    hasher_.add(object_.contents(object_.sections()[at.section]).subspan(at.begin, at.end - at.begin));
    std::vector<Elf64_Rela> inside;
    for (const Elf64_Shdr& table : object_.sections()) {
      if (table.sh_info != at.section || (table.sh_type != SHT_RELA && table.sh_type != SHT_REL)) continue;
      if (table.sh_type == SHT_REL) return false;
      for (const Elf64_Rela& r : object_.relocations(table))
        if (r.r_offset >= at.begin && r.r_offset < at.end) inside.push_back(r);
    }
    std::ranges::stable_sort(inside, {}, &Elf64_Rela::r_offset);
    hasher_.add(static_cast<std::int64_t>(inside.size()));
    for (const Elf64_Rela& r : inside) {
      const Elf64_Sym symbol = object_.symbol(ELF64_R_SYM(r.r_info));
      hasher_.add(static_cast<std::int64_t>(r.r_offset - at.begin));
      hasher_.add(static_cast<std::int64_t>(ELF64_R_TYPE(r.r_info))).add(static_cast<std::int64_t>(r.r_addend));
      if (symbol.st_shndx == SHN_UNDEF) {
        hasher_.add("external").add(object_.symbol_name(symbol));
        continue;
      }
      const auto target = referred(symbol);
      if (!target) return false;
      auto known = std::ranges::find(pieces_, *target);
      const auto number = static_cast<std::int64_t>(known - pieces_.begin());
      const auto offset = static_cast<std::int64_t>(symbol.st_value - target->begin);
      if (known == pieces_.end()) pieces_.push_back(*target);
      hasher_.add("inside").add(number).add(offset);
    }
    return true;
  }

  const elf_object& object_;
  field_hasher hasher_;
  std::vector<piece> pieces_;  // in order of discovery; each is hashed once
};

}  // namespace

std::optional<content_hash> code_identity(const elf_object& object, std::string_view function) {
  return identity(object).of(function);
}

}  // namespace kiln
