// What a Redis server sends, in pieces of the size that the first byte says.
#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "fuzz_target.hpp"
#include "jit/remote/reply_reader.hpp"

namespace kiln::fuzzing {
namespace {

struct no_more {};

}  // namespace

void read_input(std::span<const std::byte> input) {
  if (input.empty()) return;
  const std::size_t piece = 1 + std::to_integer<std::size_t>(input[0]);
  input = input.subspan(1);
  reply_reader reader([&](std::span<char> buffer) {
    const std::size_t count = std::min({buffer.size(), piece, input.size()});
    if (count == 0) throw no_more();
    std::memcpy(buffer.data(), input.data(), count);
    input = input.subspan(count);
    return count;
  });
  try {
    for (;;) reader.read({.bytes = 4096, .elements = 64});
  } catch (const reply_error&) {
  } catch (const no_more&) {}
}

}  // namespace kiln::fuzzing
