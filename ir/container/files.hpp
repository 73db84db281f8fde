// Reading a file through a mapping, and writing one so that it is either there in whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "ir/temporary_file.hpp"

namespace kiln::container {

// A regular file, mapped read-only; unmapped on destruction. Throws error{missing_file} where it cannot be opened,
// error{io} where it cannot be mapped.
class mapped_file {
 public:
  static std::shared_ptr<const mapped_file> open(const std::filesystem::path& file);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit mapped_file(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

// A temporary in the folder of `target` that takes its place on commit(), after every byte has reached the disk. It has
// no name until then where the file system can do that, so that a killed process leaves nothing; elsewhere it is
// removed on destruction unless committed. Every failure throws error{io} naming the target.
class output_file {
 public:
  explicit output_file(std::filesystem::path target);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  void write(std::span<const std::byte> bytes);
  void pad_to(std::uint64_t offset);  // with zeros
  std::uint64_t size() const { return size_; }
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int code) const;
  std::filesystem::path target_, temporary_;  // empty: no name
  std::optional<temporary_file> registered_;  // of temporary_
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace kiln::container
