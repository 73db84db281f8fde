// An archive of cache entries.
#include "jit/cache/archive.hpp"

#include "fuzz_target.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  std::size_t bytes = 0;
  read_archive(as_file(input), [&](const archive_member& member, const auto& read) {
    require(member.bytes <= max_member_bytes, "a larger member is not offered");
    bytes += read().size();
    require(bytes <= (std::size_t{1} << 30) + (std::size_t{64} << 20) + input.size() * 1024, "all members are bounded");
  });
}

}  // namespace kiln::fuzzing
