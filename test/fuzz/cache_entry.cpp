// An entry of the cache. Hashes of the header and the payload are made right again, so that mutants get past them.
#include "jit/cache/entry.hpp"

#include <cstring>

#include "fuzz_target.hpp"
#include "ir/error.hpp"
#include "ir/native_kernel.hpp"

namespace kiln::fuzzing {
namespace {

void put(std::span<std::byte> bytes, std::size_t at, const content_hash& hash) {
  std::memcpy(bytes.data() + at, hash.bytes.data(), hash.bytes.size());
}

void repair(std::span<std::byte> entry) {
  if (entry.size() < entry_header_bytes) return;
  std::uint32_t kind = 0, fields = 0;
  std::uint64_t stored = 0;
  std::memcpy(&kind, entry.data() + 12, sizeof kind);
  std::memcpy(&fields, entry.data() + 48, sizeof fields);
  std::memcpy(&stored, entry.data() + 56, sizeof stored);
  if (fields > entry.size() - entry_header_bytes) return;
  std::size_t at = entry_header_bytes + fields;
  if (kind != 0) at = (at + entry_page - 1) / entry_page * entry_page;
  if (at <= entry.size() && stored <= entry.size() - at) put(entry, 72, blake3(entry.subspan(at, stored)));
  std::vector<std::byte> covered(entry.begin(), entry.begin() + 112);
  const auto text = entry.subspan(entry_header_bytes, fields);
  covered.insert(covered.end(), text.begin(), text.end());
  put(entry, 112, blake3(covered));
}

}  // namespace

void read_input(std::span<const std::byte> input) {
  std::vector<std::byte> entry(input.begin(), input.end());
  if (!entry.empty() && (entry.back() & std::byte{1}) == std::byte{0}) repair(entry);
  const entry_head head = verify_entry(entry);
  require(entry_file_name(head.key, head.kind).size() > 64, "an entry has a name");
  if (head.kind == entry_kind::kernel) deserialize_native_kernel(decode_kernel_entry(entry, head.key));
  else decode_prepared_entry(entry, head.key);
}

}  // namespace kiln::fuzzing
