#include "runtime/object_loader.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "ir/error.hpp"
#include "runtime/elf_object.hpp"
#include "runtime/relocation.hpp"

namespace kiln {
namespace {

constexpr std::size_t got_entry_bytes = 8;
// The small code model reaches 2 GiB. No kernel comes close to this limit.
constexpr std::uint64_t largest_image = 1u << 30;

enum region : unsigned { text, read_only, data, region_count };
constexpr std::array<int, region_count> protection{PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};

struct place {
  region part;
  std::uint64_t offset;  // from the start of the part
};

// The target of a symbol: a place in the image, or an address outside of it.
struct target {
  std::optional<place> inside;
  std::uint64_t outside = 0;
  friend bool operator<(const target& a, const target& b) {
    auto key = [](const target& t) {
      return t.inside ? std::tuple(1, std::uint64_t{t.inside->part}, t.inside->offset)
                      : std::tuple(0, std::uint64_t{0}, t.outside);
    };
    return key(a) < key(b);
  }
};

struct fixup {
  const relocation_kind* kind;
  place where;
  target symbol;
  std::uint64_t addend;
};

// Computes the whole layout before anything is mapped.
class image_layout {
 public:
  explicit image_layout(const code_image::external_symbols& externals) : externals_(externals) {}

  void add(const elf_object& object) {
    std::vector<std::optional<place>> places;
    for (const Elf64_Shdr& section : object.sections()) places.push_back(place_section(object, section));
    for (const Elf64_Shdr& section : object.sections()) {
      if (section.sh_type != SHT_RELA && section.sh_type != SHT_REL) continue;
      if (section.sh_info >= places.size()) corrupted_object("it has relocations for a section that does not exist");
      if (!places[section.sh_info]) continue;  // debug information, unwind tables
      if (section.sh_type == SHT_REL) unsupported_object("relocations without addends (SHT_REL)");
      for (const Elf64_Rela& relocation : object.relocations(section))
        add_fixup(object, places, section.sh_info, relocation);
    }
    auto& functions = functions_.emplace_back();
    for (std::size_t i = 0; i < object.symbol_count(); ++i) {
      Elf64_Sym symbol = object.symbol(i);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL ||
          symbol.st_shndx == SHN_UNDEF)
        continue;
      target t = resolve(object, places, i);
      // A function has at least one byte; other symbols may mark the end of a section.
      if (!t.inside || t.inside->part != text || symbol.st_value >= object.sections()[symbol.st_shndx].sh_size)
        corrupted_object("function '" + std::string(object.symbol_name(symbol)) + "' lies outside the code");
      functions.emplace(object.symbol_name(symbol), *t.inside);
    }
  }

  // Stubs follow the code; the global offset table follows the read-only data.
  void finish() {
    stubs_at_ = reserve(text, stubs_.size() * stub_bytes, 16);
    got_at_ = reserve(read_only, got_.size() * got_entry_bytes, 8);
    std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)), at = 0;
    for (unsigned r = 0; r < region_count; ++r) {
      begins_[r] = at;
      at += (sizes_[r] + page - 1) / page * page;
    }
    total_ = at;
  }

  std::uint64_t total() const { return total_; }
  const auto& functions() const { return functions_; }
  std::uint64_t offset(place p) const { return begins_[p.part] + p.offset; }

  void write(std::byte* base) const {
    auto address = [&](place p) { return reinterpret_cast<std::uint64_t>(base) + offset(p); };
    for (const auto& [where, bytes] : copies_) std::memcpy(base + offset(where), bytes.data(), bytes.size());
    for (const auto& [t, index] : got_)
      patch(got_entry, base + offset(got_place(index)), t.inside ? address(*t.inside) : t.outside);
    for (const auto& [t, index] : stubs_)
      write_stub(base + offset(stub_place(index)), address(stub_place(index)), address(got_place(got_.at(t))));
    for (const fixup& f : fixups_) {
      std::uint64_t s = f.symbol.inside ? address(*f.symbol.inside) : f.symbol.outside, p = address(f.where), value = 0;
      bool relative_to_outside = !f.symbol.inside && stubs_.contains(f.symbol);
      switch (f.kind->value) {
        case formula::nothing: continue;
        case formula::s_plus_a: value = s + f.addend; break;
        case formula::s_plus_a_minus_p:
        case formula::l_plus_a_minus_p:
          value = (relative_to_outside ? address(stub_place(stubs_.at(f.symbol))) : s) + f.addend - p;
          break;
        case formula::g_plus_a_minus_p: value = address(got_place(got_.at(f.symbol))) + f.addend - p; break;
        case formula::page_of_s_plus_a_minus_page_of_p: value = page_of(s + f.addend) - page_of(p); break;
        case formula::g_plus_a: value = address(got_place(got_.at(f.symbol))) + f.addend; break;
        case formula::page_of_g_plus_a_minus_page_of_p:
          value = page_of(address(got_place(got_.at(f.symbol))) + f.addend) - page_of(p);
          break;
      }
      patch(*f.kind, base + offset(f.where), value);
    }
  }

  void protect(std::byte* base) const {
    for (unsigned r = 0; r < region_count; ++r) {
      std::uint64_t end = r + 1 < region_count ? begins_[r + 1] : total_;
      if (end > begins_[r] && ::mprotect(base + begins_[r], end - begins_[r], protection[r]) != 0)
        throw error(error_kind::io, std::string("native object: mprotect: ") + std::strerror(errno));
    }
    __builtin___clear_cache(reinterpret_cast<char*>(base), reinterpret_cast<char*>(base + begins_[read_only]));
  }

 private:
  std::uint64_t reserve(region r, std::uint64_t bytes, std::uint64_t alignment) {
    std::uint64_t at = (sizes_[r] + alignment - 1) / alignment * alignment;
    if (bytes > largest_image || at + bytes > largest_image)
      unsupported_object("its code and data need more than 1 GiB");
    sizes_[r] = at + bytes;
    return at;
  }

  std::optional<place> place_section(const elf_object& object, const Elf64_Shdr& section) {
    if (!(section.sh_flags & SHF_ALLOC)) return std::nullopt;
    if (section.sh_type == SHT_INIT_ARRAY || section.sh_type == SHT_FINI_ARRAY || section.sh_type == SHT_PREINIT_ARRAY)
      unsupported_object("static constructors (section " + std::string(object.section_name(section)) + ")");
    if (section.sh_type != SHT_PROGBITS && section.sh_type != SHT_NOBITS) return std::nullopt;  // notes, unwind tables
    auto name = object.section_name(section);
    if (name == ".eh_frame") return std::nullopt;  // nothing unwinds through a kernel
    if (section.sh_flags & (SHF_TLS | SHF_COMPRESSED))
      unsupported_object("section " + std::string(name) + " is thread-local or compressed");
    bool executable = section.sh_flags & SHF_EXECINSTR, writable = section.sh_flags & SHF_WRITE;
    if (executable && writable) unsupported_object("section " + std::string(name) + " is writable and executable");
    if (executable && section.sh_type == SHT_NOBITS) corrupted_object("code without contents");
    std::uint64_t alignment = std::max<std::uint64_t>(section.sh_addralign, 1);
    if (alignment & (alignment - 1)) corrupted_object("a section's alignment is not a power of two");
    if (alignment > 4096) unsupported_object("section " + std::string(name) + " is aligned to more than a page");
    // Written only by relocation.
    bool relocated_only = name.starts_with(".data.rel.ro");
    region part = executable ? text : writable && !relocated_only ? data : read_only;
    place where{part, reserve(part, section.sh_size, alignment)};
    if (section.sh_type == SHT_PROGBITS && section.sh_size) copies_.emplace_back(where, object.contents(section));
    return where;
  }

  target resolve(const elf_object& object, const std::vector<std::optional<place>>& places, std::size_t index) {
    if (index == 0) return {};  // no symbol: value 0
    Elf64_Sym symbol = object.symbol(index);
    auto name = std::string(object.symbol_name(symbol));
    auto type = ELF64_ST_TYPE(symbol.st_info);
    if (type == STT_GNU_IFUNC || type == STT_TLS)
      unsupported_object("symbol '" + name + "' is " + (type == STT_TLS ? "thread-local" : "an indirect function"));
    if (symbol.st_shndx == SHN_UNDEF) {
      const void* address = externals_(name);
      if (!address) unsupported_object("it needs '" + name + "', which kernels may not call");
      return {std::nullopt, reinterpret_cast<std::uint64_t>(address)};
    }
    if (symbol.st_shndx == SHN_ABS) return {std::nullopt, symbol.st_value};
    if (symbol.st_shndx == SHN_COMMON)
      unsupported_object("symbol '" + name + "' is a common symbol; compile with -fno-common");
    if (symbol.st_shndx >= places.size())
      corrupted_object("symbol '" + name + "' lies in a section that does not exist");
    const auto& where = places[symbol.st_shndx];
    if (!where) corrupted_object("symbol '" + name + "' lies in a section that is not loaded");
    if (symbol.st_value > object.sections()[symbol.st_shndx].sh_size)
      corrupted_object("symbol '" + name + "' lies outside its section");
    return {place{where->part, where->offset + symbol.st_value}, 0};
  }

  void add_fixup(const elf_object& object, const std::vector<std::optional<place>>& places, std::size_t section,
                 const Elf64_Rela& relocation) {
    const relocation_kind& kind = find_relocation(ELF64_R_TYPE(relocation.r_info));
    std::uint64_t width = kind.target == field::word64 ? 8 : kind.target == field::none ? 0 : 4;
    const Elf64_Shdr& patched = object.sections()[section];
    if (patched.sh_type == SHT_NOBITS || relocation.r_offset > patched.sh_size ||
        patched.sh_size - relocation.r_offset < width)
      corrupted_object("a relocation lies outside its section");
    if (kind.value == formula::nothing) return;
    std::size_t index = ELF64_R_SYM(relocation.r_info);
    target t = resolve(object, places, index);
    bool undefined = index != 0 && object.symbol(index).st_shndx == SHN_UNDEF;
    if (kind.may_call() && undefined) {
      stubs_.try_emplace(t, stubs_.size());
      got_.try_emplace(t, got_.size());
    }
    if (kind.uses_got()) got_.try_emplace(t, got_.size());
    fixups_.push_back({&kind,
                       {places[section]->part, places[section]->offset + relocation.r_offset},
                       t,
                       static_cast<std::uint64_t>(relocation.r_addend)});
  }

  place got_place(std::size_t index) const { return {read_only, got_at_ + index * got_entry_bytes}; }
  place stub_place(std::size_t index) const { return {text, stubs_at_ + index * stub_bytes}; }

  const code_image::external_symbols& externals_;
  std::vector<std::pair<place, std::span<const std::byte>>> copies_;
  std::vector<fixup> fixups_;
  std::map<target, std::size_t> got_, stubs_;  // to index
  std::vector<std::map<std::string, place, std::less<>>> functions_;
  std::array<std::uint64_t, region_count> sizes_{}, begins_{};
  std::uint64_t stubs_at_ = 0, got_at_ = 0, total_ = 0;
};

}  // namespace

code_image::code_image(std::span<const std::span<const std::byte>> objects, const external_symbols& externals) {
  std::vector<elf_object> parsed;
  image_layout layout(externals);
  for (auto bytes : objects) layout.add(parsed.emplace_back(bytes, host_machine));
  layout.finish();
  code_image image;  // its destructor unmaps if relocation throws
  if (layout.total()) {
    void* at = ::mmap(nullptr, layout.total(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw error(error_kind::io, std::string("native object: mmap: ") + std::strerror(errno));
    image.mapping_ = static_cast<std::byte*>(at);
    image.mapped_bytes_ = layout.total();
    layout.write(image.mapping_);
    layout.protect(image.mapping_);
  }
  for (const auto& functions : layout.functions()) {
    auto& addresses = image.functions_.emplace_back();
    for (const auto& [name, where] : functions) addresses.emplace(name, image.mapping_ + layout.offset(where));
  }
  *this = std::move(image);
}

code_image::~code_image() {
  if (mapping_) ::munmap(mapping_, mapped_bytes_);
}

code_image::code_image(code_image&& other) noexcept { *this = std::move(other); }

code_image& code_image::operator=(code_image&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(functions_, other.functions_);
  return *this;
}

const void* code_image::find(std::size_t object, std::string_view symbol) const {
  if (object < functions_.size())
    if (auto it = functions_[object].find(symbol); it != functions_[object].end()) return it->second;
  throw error(error_kind::corrupted,
              "native object: it has no function '" + std::string(symbol) + "', which a launch refers to");
}

}  // namespace kiln
