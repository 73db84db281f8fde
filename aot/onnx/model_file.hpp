// Bytes of files: mapped read-only, alive as long as somebody holds the pointer.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include <onnx/onnx_pb.h>

namespace kiln::onnx_import {

class mapped_file {
 public:
  // Throws error{missing_file} naming `what` and the path, error{io} where it cannot be mapped.
  static std::shared_ptr<const mapped_file> open(const std::filesystem::path& path, const std::string& what);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  mapped_file() = default;
  std::span<const std::byte> bytes_;
};

// Throws error{truncated} where a field runs past the end of the bytes, error{corrupted} for anything else that does
// not parse.
::onnx::ModelProto parse_model(std::span<const std::byte> bytes, const std::string& what);

}  // namespace kiln::onnx_import
