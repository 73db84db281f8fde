#include "jit/compare_cached.hpp"

#include <map>
#include <mutex>

#include "jit/kernel_compiler.hpp"
#include "jit/kernel_groups.hpp"
#include "jit/parallel.hpp"

namespace kiln {

cache_comparison compare_with_cache(const program& bound, const jit_options& options, bool replace) {
  jit_options without_cache = options;
  without_cache.cache = nullptr;
  kernel_compiler cached(bound, options), fresh(bound, without_cache);
  kernel_groups groups = group_code_objects(bound);
  std::vector<std::pair<const kernel_group*, native_bytes>> present;
  cache_comparison result;
  for (const kernel_group& g : groups.list) {
    auto found = cached.find(g, cached.configuration(g));
    if (found) present.emplace_back(&g, std::move(found));
    else ++result.absent;
  }
  result.compared = present.size();
  std::mutex mutex;
  std::size_t done = 0;
  std::map<std::size_t, cache_mismatch> found;  // sorted by kernel, independent of the order in which threads finish
  parallel_for(present.size(), options.threads, [&](std::size_t i) {
    const auto& [group, bytes] = present[i];
    native_bytes compiled = fresh.compile(*group, cached.configuration(*group));
    if (*compiled != *bytes) {
      if (replace) cached.keep(*group, cached.configuration(*group), compiled);
      std::lock_guard lock(mutex);
      found[i] = {group->portable.symbol, cached.key(*group, cached.configuration(*group)).hash().hex(),
                  blake3(*bytes).hex(), blake3(*compiled).hex()};
    }
    std::lock_guard lock(mutex);
    ++done;
    if (options.progress) options.progress(done, present.size());
  });
  for (auto& [i, mismatch] : found) result.mismatches.push_back(std::move(mismatch));
  return result;
}

}  // namespace kiln
