#include "aot/onnx/model_file.hpp"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>
#include <string_view>

#include "ir/error.hpp"

namespace kiln::onnx_import {
namespace {

std::optional<std::uint64_t> varint(std::span<const std::byte>& rest) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    auto byte = static_cast<std::uint64_t>(rest.front());
    rest = rest.subspan(1);
    value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
  return std::nullopt;
}

// Protobuf only reports that parsing failed. A truncated file has well-formed fields of the ModelProto message up to
// one that extends past the end; anything else was never an ONNX model.
bool looks_truncated(std::span<const std::byte> rest) {
  if (rest.empty()) return true;
  while (!rest.empty()) {
    auto tag = varint(rest);
    if (!tag) return rest.empty();
    std::uint64_t field = *tag >> 3, wire = *tag & 7, length = wire == 1 ? 8 : wire == 5 ? 4 : 0;
    if (field == 0 || field > 100 || (wire != 0 && wire != 1 && wire != 2 && wire != 5)) return false;
    if (wire == 0 || wire == 2) {
      auto value = varint(rest);
      if (!value) return rest.empty();
      if (wire == 2) length = *value;
    }
    if (length > rest.size()) return true;
    rest = rest.subspan(length);
  }
  return false;
}

}  // namespace

std::shared_ptr<const mapped_file> mapped_file::open(const std::filesystem::path& path, const std::string& what) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    throw error(error_kind::missing_file, what + ": cannot open '" + path.string() + "': " + std::strerror(errno));
  struct stat status{};
  bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  void* address = nullptr;
  auto size = static_cast<std::size_t>(status.st_size);
  if (regular && size > 0) address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ::close(descriptor);
  if (!regular) throw error(error_kind::missing_file, what + ": '" + path.string() + "' is not a regular file");
  if (address == MAP_FAILED)
    throw error(error_kind::io, what + ": cannot map '" + path.string() + "': " + std::strerror(errno));
  std::shared_ptr<mapped_file> file(new mapped_file);
  if (size > 0) file->bytes_ = {static_cast<const std::byte*>(address), size};
  return file;
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

::onnx::ModelProto parse_model(std::span<const std::byte> bytes, const std::string& what) {
  if (bytes.size() > INT_MAX)
    throw error(error_kind::unsupported,
                what + " is larger than the 2 GiB of one protobuf message; save its weights as external data");
  ::onnx::ModelProto model;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(INT_MAX);
  bool parsed = !bytes.empty() && model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (parsed) return model;
  if (looks_truncated(bytes)) throw error(error_kind::truncated, what + " ends in the middle of the model");
  constexpr std::string_view kiln_file = "\x89KILN";
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kiln_file.size()));
  throw error(error_kind::corrupted,
              what + (begin == kiln_file ? " is a compiled .kiln file: give the ONNX model that it was made of"
                                         : " is not an ONNX model"));
}

}  // namespace kiln::onnx_import
