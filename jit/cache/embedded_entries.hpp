// Cache entries that travel inside a `.kiln` file, byte for byte as files (entry.hpp): its section `objects`, where an
// object's payload is a whole entry. A layer of the cache behind the folders; kernels only, since packed weights are
// mapped from files of their own.
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

// What one file holds. Immutable; any thread may read.
class embedded_entries {
 public:
  // Null where the file holds none. Throws what read_extras throws. The entries themselves are verified when they are
  // used.
  static std::shared_ptr<const embedded_entries> read(const std::filesystem::path& file);

  std::optional<std::span<const std::byte>> find(const std::string& entry_name) const;
  const std::filesystem::path& file() const { return file_; }
  const std::map<std::string, std::vector<std::byte>>& all() const { return entries_; }  // by entry file name

 private:
  std::filesystem::path file_;
  std::map<std::string, std::vector<std::byte>> entries_;
};

struct embedding {
  std::uint64_t added = 0, replaced = 0, present = 0;  // present: byte for byte already
  std::uint64_t bytes = 0;                             // of all entries in the file now
};

// Puts kernel entries into `file`, beside those that it holds already, in one atomic step; where nothing would change
// the file is not touched. Everything else in the file stays byte for byte. Throws error{corrupted, truncated} for an
// entry that is not sound, error{unsupported} for one that is no kernel, and what read_extras and replace_extras throw.
embedding embed_entries(const std::filesystem::path& file, std::span<const std::vector<std::byte>> entries);

}  // namespace kiln
