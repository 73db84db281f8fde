#include "ir/trust/known_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "ir/error.hpp"
#include "ir/spirv_object_generated.h"

namespace kiln {
namespace {

namespace schema = spirv::schema;

// One row for each kernel of spirv/library, in this version and in released ones whose kernels check their operands.
// Rows of released versions stay. test/spirv/library/known_kernels_test.cpp prints the rows that are missing.
struct known_kernel {
  std::string_view name, identity;
};
constexpr known_kernel known[] = {
#include "ir/trust/known_kernels.inc"
};

using texts = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

// An absent field means the same as an empty one.
std::string_view text_of(const flatbuffers::String* stored) {
  return stored ? std::string_view(stored->c_str(), stored->size()) : std::string_view();
}

class identity_hasher {
 public:
  identity_hasher() { hash_.add("Kiln kernel identity 1"); }

  void add(const flatbuffers::String* stored) { hash_.add(text_of(stored)); }
  void add(std::int64_t number) { hash_.add(number); }
  void add(const texts* list) {
    each(list, [&](const flatbuffers::String* s) { add(s); });
  }
  void add(const flatbuffers::Vector<std::uint8_t>* bytes) {
    hash_.add(bytes ? std::as_bytes(std::span(bytes->data(), bytes->size())) : std::span<const std::byte>());
  }
  template <class List, class Visit>
  void each(const List* list, Visit visit) {
    const flatbuffers::uoffset_t count = list ? list->size() : 0;
    add(std::int64_t{count});
    for (flatbuffers::uoffset_t i = 0; i < count; ++i) visit(list->Get(i));
  }

  content_hash finish() { return hash_.finish(); }

 private:
  field_hasher hash_;
};

}  // namespace

bool is_hip_kernel(std::span<const std::byte> payload) {
  return payload.size() >= 8 && std::memcmp(payload.data() + 4, schema::ObjectIdentifier(), 4) == 0;
}

content_hash kernel_identity(std::span<const std::byte> payload) {
  std::vector<std::byte> aligned(payload.begin(), payload.end());  // a copy, because FlatBuffers needs aligned data
  const auto* data = reinterpret_cast<const std::uint8_t*>(aligned.data());
  flatbuffers::Verifier verifier(data, aligned.size(), 16, 1 << 16);
  if (!is_hip_kernel(payload) || !schema::VerifyObjectBuffer(verifier))
    throw error(error_kind::corrupted, "damaged amdgcnspirv object: its structure is invalid");
  const schema::Object& o = *schema::GetObject(data);
  identity_hasher hash;
  hash.add(o.domain());
  hash.add(o.name());
  hash.each(o.restrictions(), [&](const schema::Restriction* r) {
    hash.add(std::int64_t{r->input()});
    hash.add(r->type());
  });
  hash.add(o.requirements());
  hash.each(o.results(), [&](const schema::Result* r) {
    hash.add(r->type());
    hash.add(r->dims());
  });
  hash.add(o.scratch());
  hash.each(o.launches(), [&](const schema::Launch* l) {
    hash.add(l->symbol());
    hash.add(std::int64_t{l->rule()});
    hash.add(l->count());
    hash.add(l->block());
    hash.add(l->shared_bytes());
    hash.add(std::int64_t{l->max_threads()});
    hash.each(l->parameters(), [&](const schema::Parameter* p) {
      hash.add(std::int64_t{p->kind()});
      hash.add(std::int64_t{p->type()});
      hash.add(std::int64_t{p->index()});
      hash.add(p->expression());
    });
  });
  hash.add(o.words());
  return hash.finish();
}

bool is_known_kernel(std::span<const std::byte> payload) {
  try {
    const std::string identity = kernel_identity(payload).hex();
    return std::ranges::find(known, std::string_view(identity), &known_kernel::identity) != std::end(known);
  } catch (const error&) {
    return false;
  }
}

}  // namespace kiln
