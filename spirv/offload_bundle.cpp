#include "spirv/offload_bundle.hpp"

#include <array>
#include <cstdint>

namespace kiln::spirv {
namespace {

// The format is specified in clang/docs/ClangOffloadBundler: magic, number of entries; for each entry the offset, the
// size, the length of its id, and the id; then the contents, which HIP's own bundles align to pages.
constexpr std::string_view magic = "__CLANG_OFFLOAD_BUNDLE__", host_entry = "host-x86_64-unknown-linux-gnu-";
constexpr std::uint64_t page = 4096;

void append(std::vector<std::byte>& out, std::string_view text) {
  for (char c : text) out.push_back(static_cast<std::byte>(c));
}

void append(std::vector<std::byte>& out, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<std::byte>(number >> shift & 0xff));
}

}  // namespace

std::vector<std::byte> make_offload_bundle(std::span<const std::byte> words) {
  struct entry {
    std::string_view id;
    std::uint64_t size;
  };
  const std::array entries{entry{host_entry, 0}, entry{bundle_entry, words.size()}};
  std::vector<std::byte> result;
  result.reserve(page + words.size());
  append(result, magic);
  append(result, entries.size());
  for (const entry& e : entries) {
    // The header takes less than a page, and the host's entry is empty.
    append(result, page);
    append(result, e.size);
    append(result, e.id.size());
    append(result, e.id);
  }
  result.resize(page);
  result.insert(result.end(), words.begin(), words.end());
  return result;
}

}  // namespace kiln::spirv
