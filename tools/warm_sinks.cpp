#include "tools/warm_sinks.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "ir/container/container.hpp"
#include "ir/container/stripped.hpp"
#include "jit/cache/archive.hpp"
#include "jit/prepared_cache.hpp"
#include "runtime/executable.hpp"

namespace kiln::tools {
working_cache::working_cache(const cache_choice& choice) {
  cache_choice chosen = choice;
  if (choice.disabled) {
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln-warm-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw error(error_kind::io, fmt::format("cannot create a temporary folder: {}", std::strerror(errno)));
    temporary_ = chosen.folder = pattern;
    chosen.disabled = false;
  }
  cache_ = open_cache(chosen);
  if (!cache_->writable())
    throw error(error_kind::io,
                "there is no writable cache folder: give --cache DIR, or --archive FILE with --no-cache");
  if (!choice.disabled) shown_ = cache_->folder();
}

working_cache::~working_cache() {
  cache_.reset();
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
}

warm_sinks::warm_sinks(const std::string& archive, bool embed, const warm_sources& sources)
    : archive_(archive), embed_(embed), sources_(sources) {
  std::error_code code;
  if (!archive.empty() && !is_archive_name(archive))
    throw error(error_kind::usage, fmt::format("--archive {}: the name of an archive must end with .tar.zst", archive));
  if (!archive.empty() && std::filesystem::exists(archive, code))
    read_archive(archive, [&](const archive_member& m, const auto& bytes) { archived_.emplace(m.name, bytes()); });
  known_ = archived_;
  if (!embed) return;
  for (const std::string& file : sources.files)
    if (std::filesystem::exists(file, code))
      if (auto inside = embedded_entries::read(file)) known_.insert(inside->all().begin(), inside->all().end());
}

void warm_sinks::preload(kernel_cache& cache) const {
  for (const warm_kernel& k : sources_.plan.kernels()) {
    auto found = known_.find(entry_file_name(k.key.hash(), entry_kind::kernel));
    // An entry that is not trusted is compiled again and replaced.
    if (found != known_.end() && !cache.find(k.key))
      cache.adopt(k.key, found->second, archive_.empty() ? "the file" : archive_);
  }
}

warm_sinks::summary warm_sinks::write(kernel_cache& cache, const signing_key* key,
                                      const std::vector<warm_result>& results, std::vector<warm_failure>& failures) {
  summary done;
  if (archive_.empty() && !embed_) return done;
  std::map<std::size_t, std::vector<std::vector<std::byte>>> of_file;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].state != warm_state::present && results[i].state != warm_state::compiled) continue;
    const warm_kernel& k = sources_.plan.kernels()[i];
    auto entry = cache.find_entry(k.key);
    if (!entry) {
      failures.push_back({k.symbol, error_kind::io,
                          "its compiled kernel is no longer in the cache: is the cache too small, or the disk full?"});
      continue;
    }
    if (key && entry->size() == decode_entry_head(*entry).file_bytes()) entry = signed_entry(*entry, *key);
    if (embed_)
      for (std::size_t s : k.sources) of_file[s].push_back(*entry);
    if (archive_.empty()) continue;
    auto& slot = archived_[entry_file_name(k.key.hash(), entry_kind::kernel)];
    if (slot == *entry) continue;
    slot = std::move(*entry);
    ++done.archive;
  }
  for (const auto& [source, entries] : of_file) {
    try {
      embedding e = embed_entries(sources_.files[source], entries);
      done.embedded += e.added + e.replaced;
    } catch (const error& e) {
      failures.push_back({sources_.files[source], e.kind(), e.what()});
    }
  }
  std::error_code code;
  if (archive_.empty() || (done.archive == 0 && std::filesystem::exists(archive_, code))) return done;
  archive_writer out(archive_);
  for (const auto& [name, entry] : archived_) out.add(name, entry);
  out.close();
  return done;
}

void pack_weights(const warm_sources& sources, const native_consent& consent, kernel_cache& cache,
                  std::vector<warm_failure>& failures) {
  if (!sources.device || !sources.device->device->info().host_memory) return;
  auto store = make_prepared_store(cache);
  jit_options jit = sources.device->compiling();
  jit.cache = &cache;
  jit.only_if_cached = true;
  for (const auto& [number, bindings] : sources.on_device) {
    const std::string& file = sources.files[number];
    try {
      const program p = read_program(file, consent);
      require_weights(p, file);
      load(compile_bytecode(p.bind(bindings), jit), *sources.device->device, {.store = store.get()});
    } catch (const error& e) {
      failures.push_back({file, e.kind(), e.what()});
    }
  }
}

}  // namespace kiln::tools
