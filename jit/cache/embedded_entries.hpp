// Cache entries inside a `.kiln` file, byte for byte as in cache files (entry.hpp). They are in the file's section
// `objects`; the payload of an object is a whole entry. They form a layer of the cache that is asked after the folders.
// Only kernels can be embedded, because packed weights are mapped from their own files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln {

// The embedded entries of one file. Immutable; any thread may read.
class embedded_entries {
 public:
  // Returns null if the file has none. Throws what read_extras throws. The entries are verified when they are used.
  static std::shared_ptr<const embedded_entries> read(const std::filesystem::path& file);

  std::optional<std::span<const std::byte>> find(const std::string& entry_name) const;
  const std::filesystem::path& file() const { return file_; }
  const std::map<std::string, std::vector<std::byte>>& all() const { return entries_; }  // by entry file name

 private:
  std::filesystem::path file_;
  std::map<std::string, std::vector<std::byte>> entries_;
};

struct embedding {
  std::uint64_t added = 0, replaced = 0, present = 0;  // present: the same bytes were already there
  std::uint64_t bytes = 0;                             // total of all entries that the file has now
};

// Adds kernel entries to `file` atomically. Entries that are already there stay, unless one of the same name replaces
// them. If nothing changes, the file is not touched; everything else in the file stays byte for byte. Throws
// error{corrupted, truncated} for a corrupt entry, error{unsupported} for an entry that is not a kernel, and what
// read_extras and replace_extras throw.
embedding embed_entries(const std::filesystem::path& file, std::span<const std::vector<std::byte>> entries);

}  // namespace kiln
