// The section `program`: FlatBuffers and what they say. What was read is written and read again.
#include "fuzz_target.hpp"
#include "ir/container/program_section.hpp"
#include "ir/error.hpp"

namespace kiln::fuzzing {
namespace {

constexpr std::uint32_t tensors = 16;
constexpr std::size_t largest_tensor = std::size_t{1} << 20;

literal tensor(std::uint32_t number, shape type) {
  if (number >= tensors || type.bytes() > largest_tensor) throw error(error_kind::corrupted, "no such tensor");
  return literal(std::move(type), std::vector<std::byte>(type.bytes()));
}

}  // namespace

void read_input(std::span<const std::byte> input) {
  const program p = container::decode_program(aligned_copy(input), tensor);
  p.validate();
  const std::vector<const program*> programs{&p};
  const container::weight_collection weights(programs);
  const std::vector<std::byte> first = container::encode_program(p, weights);
  const program again = container::decode_program(first, [&](std::uint32_t t, shape type) {
    const auto bytes = weights.full_bytes(t);
    return literal(std::move(type), std::vector<std::byte>(bytes.begin(), bytes.end()));
  });
  require(again.str() == p.str(), "a program that is written and read again is the same");
}

}  // namespace kiln::fuzzing
