#include "tools/random_inputs.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

#include "ir/error.hpp"

namespace kiln::tools {
namespace {

std::int64_t range_of(const program& p, const std::string& name) {
  auto found = p.metadata.find("range:" + name);
  if (found == p.metadata.end()) return 2;
  try {
    return std::max<std::int64_t>(std::stoll(found->second), 1);
  } catch (const std::logic_error&) {
    throw error(error_kind::corrupted, "the range of input '" + name + "' is not a number");
  }
}

// The numbers of std::normal_distribution<float> of libstdc++ (Marsaglia's polar method). Compiled by Clang, its
// generate_canonical calls logl for each of them, which takes longer than the rest of a warm start.
class normal_numbers {
 public:
  float operator()(std::mt19937_64& engine) {
    if (const std::optional<float> second = std::exchange(second_, std::nullopt)) return *second;
    float x, y, square;
    do {
      x = 2 * unit(engine) - 1, y = 2 * unit(engine) - 1;
      square = x * x + y * y;
    } while (square > 1 || square == 0);
    const float scale = std::sqrt(-2 * std::log(square) / square);
    second_ = x * scale;
    return y * scale;
  }

 private:
  // From 0 up to, not including, 1.
  static float unit(std::mt19937_64& engine) {
    const float u = static_cast<float>(engine()) / 0x1p64f;
    return u < 1 ? u : std::nextafter(1.0f, 0.0f);
  }
  std::optional<float> second_;
};

}  // namespace

literal untouched_zeros(const shape& type) {
  const std::size_t bytes = type.bytes();
  const std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::calloc(std::max<std::size_t>(bytes, 1), 1)),
                                          std::free);
  if (!memory) throw std::bad_alloc();
  return literal(type, {memory.get(), bytes}, memory);
}

literal random_input(const program& p, const std::string& name, const shape& type, std::uint64_t seed) {
  std::uint64_t name_bits;
  std::memcpy(&name_bits, blake3(name).bytes.data(), sizeof name_bits);
  std::mt19937_64 engine(seed ^ name_bits);
  std::vector<std::byte> bytes(type.bytes());
  std::int64_t count = type.element_count();
  if (is_float(type.type)) {
    normal_numbers normal;
    for (std::int64_t i = 0; i < count; ++i) store_element(type.type, bytes.data(), i, normal(engine));
  } else {
    std::uniform_int_distribution<std::int64_t> uniform(0,
                                                        type.type == element_type::boolean ? 1 : range_of(p, name) - 1);
    for (std::int64_t i = 0; i < count; ++i) store_integer(type.type, bytes.data(), i, uniform(engine));
  }
  return literal(type, std::move(bytes));
}

}  // namespace kiln::tools
