#include "session/resources.hpp"

#include "ir/error.hpp"
#include "jit/prepared_cache.hpp"

namespace kiln {

std::shared_ptr<worker_pool> workers_at(compile_place place, const std::string& executable) {
  if (place == compile_place::this_process) return nullptr;
  return make_compile_workers(place == compile_place::isolated_workers, executable);
}

session_resources::session_resources(session_options options, chosen_device chosen, std::string name,
                                     std::shared_ptr<const embedded_entries> embedded, std::string hints)
    : options_(std::move(options)),
      name_(std::move(name)),
      workers_(workers_at(options_.compiling, options_.compile_worker)),
      chosen_(std::move(chosen)),
      cache_(open_cache(options_.cache, std::move(embedded), [this](const std::string& text) { warn(text); })),
      records_(open_records(cache_ ? cache_->folder() : std::filesystem::path(),
                            cache_ ? cache_->layers() : std::vector<std::filesystem::path>(), chosen_, std::move(hints),
                            [this](const std::string& text) { warn(text); })),
      prepared_(cache_ ? make_prepared_store(*cache_, /*later=*/true) : nullptr) {
  if (options_.specialization == specialization::off && options_.tuning != tuning_effort::off)
    throw error(error_kind::usage, "tuning specializes kernels: tune, or do not specialize");
  chosen_.warn = [this](const std::string& text) { warn(text); };
  if (!chosen_.note.empty()) warn(chosen_.note);
}

jit_options session_resources::compiling() const {
  jit_options jit = chosen_.compiling();
  jit.family = chosen_.family;
  jit.cache = cache_.get();
  jit.store_later = true;
  jit.records = records_.get();
  jit.threads = options_.threads;
  jit.workers = workers_;
  jit.only_if_cached = options_.only_cached;
  return jit;
}

jit_options session_resources::compiling_with_progress() const {
  jit_options jit = compiling();
  jit.progress = [this](std::size_t done, std::size_t total) { report(session_events::finalizing{done, total}); };
  return jit;
}

void session_resources::report(const session_event& event) const {
  if (options_.observer) options_.observer(event);
}

}  // namespace kiln
