#include <cstring>

#include "spirv/library/library.hpp"

namespace kiln::spirv {

std::vector<object> unpack_library(std::span<const std::byte> bytes) {
  std::vector<object> objects;
  while (!bytes.empty()) {
    std::uint64_t size = 0;
    if (bytes.size() < sizeof size)
      throw error(error_kind::truncated, "the library of kernels ends in the middle of a length");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes = bytes.subspan(sizeof size);
    if (size > bytes.size())
      throw error(error_kind::truncated, "the library of kernels ends in the middle of an object");
    objects.push_back(deserialize_object(bytes.first(size)));
    bytes = bytes.subspan(size);
  }
  return objects;
}

std::vector<std::byte> pack_library(std::span<const object> objects) {
  std::vector<std::byte> bytes;
  for (const object& o : objects) {
    std::vector<std::byte> one = serialize(o);
    std::uint64_t size = one.size();
    const auto* length = reinterpret_cast<const std::byte*>(&size);
    bytes.insert(bytes.end(), length, length + sizeof size);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  return bytes;
}

}  // namespace kiln::spirv
