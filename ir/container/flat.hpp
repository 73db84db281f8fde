// Helpers shared by the FlatBuffers sections of the container. Includes the generated schema, so only the .cpp files of
// this folder should include it.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "ir/aligned_list.hpp"
#include "ir/error.hpp"
#include "ir/hash.hpp"
#include "ir/program_generated.h"

namespace kiln::container {

namespace schema = container_schema;

inline constexpr const char* program_identifier = "KPR1";
inline constexpr const char* kernels_identifier = "KKE1";
inline constexpr const char* weights_index_identifier = "KWI1";
inline constexpr const char* objects_identifier = "KOB1";

inline schema::Hash to_flat(const content_hash& hash) {
  return schema::Hash(flatbuffers::span<const std::uint8_t, 32>(hash.bytes.data(), 32));
}

inline content_hash from_flat(const schema::Hash& hash) {
  content_hash result;
  std::memcpy(result.bytes.data(), hash.bytes()->Data(), result.bytes.size());
  return result;
}

template <class Root>
std::vector<std::byte> finish(flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<Root> root,
                              const char* identifier) {
  builder.Finish(root, identifier);
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {begin, begin + builder.GetSize()};
}

// `section` must be 16-byte aligned and outlive the result. Throws error{corrupted} unless the whole buffer is
// well-formed.
template <class Root>
const Root* verified_root(std::span<const std::byte> section, const char* identifier, const char* name) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(section.data());
  bool sized = section.size() >= 8 && section.size() < FLATBUFFERS_MAX_BUFFER_SIZE;
  if (sized && flatbuffers::BufferHasIdentifier(data, identifier)) {
    flatbuffers::Verifier verifier(data, section.size(), 32, 1 << 26);
    if (verifier.VerifyBuffer<Root>(identifier)) return flatbuffers::GetRoot<Root>(data);
  }
  throw error(error_kind::corrupted, std::string("the ") + name + " is not well-formed");
}

// Strings and arrays in a FlatBuffer may overlap, so a small hostile file can describe a huge structure. Every decoded
// byte is therefore charged to a budget proportional to the size of the section.
class decode_budget {
 public:
  explicit decode_budget(std::size_t section_bytes)
      : left_((std::uint64_t{16} << 20) + std::uint64_t{64} * section_bytes) {}
  void take(std::uint64_t bytes) {
    if (bytes > left_) throw error(error_kind::corrupted, "the program is far larger than the section that holds it");
    left_ -= bytes;
  }
  std::string text(const flatbuffers::String* s) {
    if (!s) return {};
    take(s->size());
    return s->str();
  }

 private:
  std::uint64_t left_;
};

}  // namespace kiln::container
