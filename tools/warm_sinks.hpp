// Where `kiln warm` stores its kernels: a cache folder, an archive, or the .kiln files themselves.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jit/cache/kernel_cache.hpp"
#include "session/cache_choice.hpp"
#include "tools/warm_sources.hpp"

namespace kiln::tools {

// The cache that kernels are compiled into: the user's, or with --no-cache a temporary one that the destructor removes.
// Throws error{io} if the cache cannot be written.
class working_cache {
 public:
  explicit working_cache(const cache_choice& choice);
  ~working_cache();
  working_cache(const working_cache&) = delete;
  working_cache& operator=(const working_cache&) = delete;
  kernel_cache& get() { return *cache_; }
  const std::filesystem::path& folder() const { return shown_; }  // empty for a temporary cache

 private:
  std::filesystem::path temporary_, shown_;
  std::unique_ptr<kernel_cache> cache_;
};

class warm_sinks {
 public:
  // `sources` must outlive this object. An existing archive is read and extended. Throws error{usage} for a name that
  // is not an archive's, error{corrupted, truncated, missing_file} for an archive that cannot be read.
  warm_sinks(const std::string& archive, bool embed, const warm_sources& sources);

  // Copies the plan's kernels that the archive or the files already have into the cache, with their signatures, so that
  // they are not compiled again. Entries that the cache does not trust are left out.
  void preload(kernel_cache& cache) const;

  struct summary {
    std::uint64_t archive = 0, embedded = 0;  // entries that were added
  };
  // Adds the plan's kernels in the cache to the archive and the files. Files that get nothing new are not touched.
  // Unsigned entries are signed with `key`; null: they stay unsigned.
  summary write(kernel_cache& cache, const signing_key* key, const std::vector<warm_result>& results,
                std::vector<warm_failure>& failures);

 private:
  std::filesystem::path archive_;
  bool embed_;
  const warm_sources& sources_;
  // Entries by name: those of the archive, and those of the archive or the files.
  std::map<std::string, std::vector<std::byte>> archived_, known_;
};

// Loads every file on the device, so that packed weights are stored in the cache as well. Only useful for the host, the
// only device whose packed weights are cached.
void pack_weights(const warm_sources& sources, const native_consent& consent, kernel_cache& cache,
                  std::vector<warm_failure>& failures);

}  // namespace kiln::tools
