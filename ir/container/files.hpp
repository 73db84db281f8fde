// Reads files through memory mappings and writes files atomically.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "ir/mapped_pages.hpp"
#include "ir/temporary_file.hpp"

namespace kiln::container {

// A regular file, mapped read-only and unmapped on destruction. Throws error{missing_file} if it cannot be opened,
// error{io} if it cannot be mapped.
class mapped_file {
 public:
  static std::shared_ptr<const mapped_file> open(const std::filesystem::path& file);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit mapped_file(std::span<const std::byte> bytes);
  std::span<const std::byte> bytes_;
  std::optional<large_mapping> large_;
};

// Writes a temporary file in the folder of `target`. commit() flushes it to disk and renames it to `target`. If the
// file system supports unnamed files (O_TMPFILE), the temporary has no name until commit(), so a killed process leaves
// nothing behind. Otherwise the destructor removes it unless it was committed. Every failure throws error{io} naming
// the target.
class output_file {
 public:
  explicit output_file(std::filesystem::path target);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  void write(std::span<const std::byte> bytes);
  void pad_to(std::uint64_t offset);  // appends zeros
  std::uint64_t size() const { return size_; }
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int code) const;
  std::filesystem::path target_, temporary_;  // temporary_ is empty while the file has no name
  std::optional<temporary_file> registered_;  // registers temporary_ for removal
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace kiln::container
