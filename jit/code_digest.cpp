#include "jit/code_digest.hpp"

#include <algorithm>
#include <array>

#include "ir/error.hpp"

namespace kiln {
namespace {

std::string_view digest_of(std::string_view back_end) {
  const auto rows = code_digests();
  const auto found = std::ranges::find(rows, back_end, &code_digest_row::back_end);
  if (found == rows.end())
    throw error(error_kind::internal, "back end '" + std::string(back_end) + "': the build made no digest for it");
  return found->digest;
}

// Indexed by target_family.
constexpr std::array<std::string_view, 3> back_ends{"cpu", "amd", "nvidia"};
static_assert(back_ends.size() == enum_table<target_family>::names.size());

}  // namespace

std::string compiler_code(target_family family, code_format format) {
  std::string code(digest_of(back_ends[static_cast<std::size_t>(family)]));
  return format == code_format::amdgcnspirv ? std::string(digest_of("spirv")) + " " + code : code;
}

}  // namespace kiln
