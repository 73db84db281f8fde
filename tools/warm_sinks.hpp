// Where `kiln warm` puts what it made: a cache folder, an archive, the files themselves.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jit/cache/kernel_cache.hpp"
#include "tools/model_session.hpp"
#include "tools/warm_sources.hpp"

namespace kiln::tools {

// The cache that kernels go through: the user's, or with --no-cache one of this command's own, which is removed with
// the object. Throws error{io} where there is none that can be written.
class working_cache {
 public:
  explicit working_cache(const cache_choice& choice);
  ~working_cache();
  working_cache(const working_cache&) = delete;
  working_cache& operator=(const working_cache&) = delete;
  kernel_cache& get() { return *cache_; }
  const std::filesystem::path& folder() const { return shown_; }  // empty for one of our own

 private:
  std::filesystem::path temporary_, shown_;
  std::unique_ptr<kernel_cache> cache_;
};

class warm_sinks {
 public:
  // Refers to `sources`. An archive that is there is read, and added to. Throws error{usage} for an archive's name,
  // error{corrupted, truncated, missing_file} for its bytes.
  warm_sinks(const std::string& archive, bool embed, const warm_sources& sources);

  // Gives the cache what the archive or the files hold of the plan, as it is signed there, so that it is not made
  // again; nothing that the cache has no consent for.
  void preload(kernel_cache& cache) const;

  struct summary {
    std::uint64_t archive = 0, embedded = 0;  // entries that were added
  };
  // Adds what is in the cache of the plan to archive and files; those to which nothing new came are not touched.
  // Entries that nobody has signed yet are signed with `key`; null: with none.
  summary write(kernel_cache& cache, const signing_key* key, const std::vector<warm_result>& results,
                std::vector<warm_failure>& failures);

 private:
  std::filesystem::path archive_;
  bool embed_;
  const warm_sources& sources_;
  std::map<std::string, std::vector<std::byte>> archived_, known_;  // entries by name; known: in archive or files
};

// Loads every file on the device, so that packed weights get into the cache as well. Only for devices whose packing is
// kept: the host.
void pack_weights(const warm_sources& sources, const native_consent& consent, kernel_cache& cache,
                  std::vector<warm_failure>& failures);

}  // namespace kiln::tools
