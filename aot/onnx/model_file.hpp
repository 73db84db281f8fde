// Read-only memory mappings of files. A mapping lives as long as a shared pointer to it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include <onnx/onnx_pb.h>

namespace kiln::onnx_import {

class mapped_file {
 public:
  // Throws error{missing_file} with `what` and the path, or error{io} if the file cannot be mapped.
  static std::shared_ptr<const mapped_file> open(const std::filesystem::path& path, const std::string& what);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  mapped_file() = default;
  std::span<const std::byte> bytes_;
};

// Throws error{truncated} if a field extends past the end of the bytes, and error{corrupted} for any other parse error.
::onnx::ModelProto parse_model(std::span<const std::byte> bytes, const std::string& what);

}  // namespace kiln::onnx_import
