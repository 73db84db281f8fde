#include "session/request_options.hpp"

namespace kiln {

static_assert(static_cast<int>(tuning_effort::quick) == KILN_TUNING_QUICK &&
              static_cast<int>(tuning_effort::exhaustive) == KILN_TUNING_EXHAUSTIVE);
static_assert(static_cast<int>(specialization::lazy) == KILN_SPECIALIZE_LAZY &&
              static_cast<int>(specialization::off) == KILN_SPECIALIZE_OFF);

session_options options_of(const model_request& request) {
  session_options options{.device = request.device, .threads = static_cast<int>(request.threads)};
  options.allocator = request.allocator;
  options.cache.folder = request.cache_folder;
  options.cache.trust = request.trusted_keys;
  options.cache.allow_unsigned = request.allow_unsigned;
  options.cache.disabled = request.no_cache;
  options.only_cached = request.only_cached;
  options.compile_worker = request.compile_worker;
  options.most_instances = request.most_instances;
  options.tuning = static_cast<tuning_effort>(request.tuning);
  options.tuning_budget_ms = 1e3 * request.tuning_seconds;
  options.specialization = static_cast<specialization>(request.specialization);
  options.observer = [progress = request.progress, warn = request.warn](const session_event& event) {
    if (const auto* e = std::get_if<session_events::finalizing>(&event); e && progress && e->total)
      progress(e->done, e->total);
    if (const auto* e = std::get_if<session_events::warning>(&event); e && warn) warn(e->text);
  };
  return options;
}

}  // namespace kiln
