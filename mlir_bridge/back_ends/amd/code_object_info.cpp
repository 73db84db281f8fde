#include "mlir_bridge/back_ends/amd/code_object_info.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "ir/error.hpp"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackReader.h"
#include "llvm/Object/ELF.h"
#include "mlir_bridge/back_ends/amd/damaged_object.hpp"

namespace kiln::gpu {
namespace {

// A metadata value: a number, a string, a list, or a map (keys and values in two parallel lists). Values of other kinds
// are left empty.
struct metadata {
  enum class kind { other, number, text, list, map } what = kind::other;
  std::int64_t number = 0;
  std::string text;
  std::vector<std::string> keys;
  std::vector<metadata> items;

  const metadata* find(std::string_view key) const {
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (keys[i] == key) return &items[i];
    return nullptr;
  }
  const metadata& at(std::string_view key, kind wanted) const {
    const metadata* found = find(key);
    if (!found || found->what != wanted) throw_corrupted(fmt::format("its metadata has no proper '{}'", key));
    return *found;
  }
};

// AMDGPU metadata has 5 levels.
constexpr int depth_limit = 16;

metadata read_metadata(llvm::msgpack::Reader& reader, int depth) {
  if (depth > depth_limit) throw_corrupted("its metadata is nested too deeply");
  llvm::msgpack::Object object;
  if (!value_or_throw(reader.read(object))) throw_corrupted("its metadata ends early");
  metadata result;
  using llvm::msgpack::Type;
  switch (object.Kind) {
    case Type::Int:
      result.what = metadata::kind::number;
      result.number = object.Int;
      break;
    case Type::UInt:
      result.what = metadata::kind::number;
      result.number = static_cast<std::int64_t>(object.UInt);
      break;
    case Type::String:
      result.what = metadata::kind::text;
      result.text = object.Raw.str();
      break;
    case Type::Array:
      result.what = metadata::kind::list;
      for (std::size_t i = 0; i < object.Length; ++i) result.items.push_back(read_metadata(reader, depth + 1));
      break;
    case Type::Map:
      result.what = metadata::kind::map;
      for (std::size_t i = 0; i < object.Length; ++i) {
        metadata key = read_metadata(reader, depth + 1);
        if (key.what != metadata::kind::text) throw_corrupted("its metadata has a key that is no string");
        result.keys.push_back(std::move(key.text));
        result.items.push_back(read_metadata(reader, depth + 1));
      }
      break;
    default: break;
  }
  return result;
}

// Returns the bytes of the AMDGPU metadata note.
std::string find_note(std::span<const std::byte> object) {
  auto file =
      value_or_throw(llvm::object::ELF64LEFile::create({reinterpret_cast<const char*>(object.data()), object.size()}));
  if (file.getHeader().e_machine != llvm::ELF::EM_AMDGPU) throw_corrupted("it is not for AMDGPU");
  for (const auto& section : value_or_throw(file.sections())) {
    if (section.sh_type != llvm::ELF::SHT_NOTE) continue;
    llvm::Error problem = llvm::Error::success();
    std::optional<std::string> found;
    for (const auto& note : file.notes(section, problem))
      if (!found && note.getName() == "AMDGPU" && note.getType() == llvm::ELF::NT_AMDGPU_METADATA)
        found = note.getDescAsStringRef(section.sh_addralign).str();
    if (problem) throw_corrupted(llvm::toString(std::move(problem)));
    if (found) return *found;
  }
  throw_corrupted("it has no metadata note");
}

std::int64_t number_or_zero(const metadata& map, std::string_view key) {
  return map.find(key) ? map.at(key, metadata::kind::number).number : 0;
}

// Maps metadata keys to fields. Objects from older compilers or for smaller hardware lack the optional ones.
struct field {
  std::string_view key;
  std::int64_t kernel_info::* member;
  bool required;
};
constexpr field fields[] = {
    {".vgpr_count", &kernel_info::vgprs, true},
    {".agpr_count", &kernel_info::agprs, false},
    {".sgpr_count", &kernel_info::sgprs, true},
    {".vgpr_spill_count", &kernel_info::vgpr_spills, false},
    {".sgpr_spill_count", &kernel_info::sgpr_spills, false},
    {".group_segment_fixed_size", &kernel_info::static_lds, true},
    {".private_segment_fixed_size", &kernel_info::scratch, true},
    {".wavefront_size", &kernel_info::wavefront, true},
    {".kernarg_segment_size", &kernel_info::argument_bytes, true},
};

kernel_info read_kernel(const metadata& map) {
  using kind = metadata::kind;
  if (map.what != kind::map) throw_corrupted("its metadata has a kernel that is no map");
  kernel_info result;
  result.name = map.at(".name", kind::text).text;
  for (const field& f : fields)
    result.*f.member = f.required ? map.at(f.key, kind::number).number : number_or_zero(map, f.key);
  if (map.find(".args"))
    for (const metadata& argument : map.at(".args", kind::list).items)
      result.arguments.push_back({argument.at(".offset", kind::number).number,
                                  argument.at(".size", kind::number).number,
                                  argument.at(".value_kind", kind::text).text});
  return result;
}

metadata read_root(std::span<const std::byte> object) {
  std::string note = find_note(object);
  llvm::msgpack::Reader reader{llvm::StringRef(note)};
  return read_metadata(reader, 0);
}

}  // namespace

std::string read_processor(std::span<const std::byte> object) {
  std::string target =
      read_root(object).at("amdhsa.target", metadata::kind::text).text;  // "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"
  std::size_t begin = target.rfind("--");
  if (begin == std::string::npos) throw_corrupted(fmt::format("its metadata has the strange target '{}'", target));
  return target.substr(begin + 2, target.find(':', begin) - (begin + 2));
}

std::vector<kernel_info> read_code_object(std::span<const std::byte> object) {
  metadata root = read_root(object);
  std::vector<kernel_info> result;
  for (const metadata& kernel : root.at("amdhsa.kernels", metadata::kind::list).items)
    result.push_back(read_kernel(kernel));
  return result;
}

}  // namespace kiln::gpu
