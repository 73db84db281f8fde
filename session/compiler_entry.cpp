// What libkiln.so gives to the C interface in libkiln_runtime.so: sessions.
#include "runtime/compiler_library.hpp"
#include "session/session.hpp"

namespace kiln {
namespace {

static_assert(static_cast<int>(tuning_effort::quick) == KILN_TUNING_QUICK &&
              static_cast<int>(tuning_effort::exhaustive) == KILN_TUNING_EXHAUSTIVE);
static_assert(static_cast<int>(specialization::lazy) == KILN_SPECIALIZE_LAZY &&
              static_cast<int>(specialization::off) == KILN_SPECIALIZE_OFF);

class session_model final : public loaded_model {
 public:
  explicit session_model(std::shared_ptr<instance> at) : at_(std::move(at)) {}
  const kiln::executable& executable() const override { return at_->executable(); }
  std::unique_ptr<model_runner> runner(graph_policy policy) const override { return at_->make_runner(policy); }
  kiln_tuning_info tuning() const override {
    const tuning_progress p = at_->tuning();
    return {p.kernels, p.tuned, p.improved, p.swaps, p.seconds, p.done};
  }
  std::string tuning_problem() const override { return at_->tuning_problem(); }

 private:
  std::shared_ptr<instance> at_;
};

session_options options_of(const model_request& request) {
  session_options options{.device = request.device, .threads = static_cast<int>(request.threads)};
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

class session_source final : public model_source {
 public:
  session_source(program portable, const model_request& request)
      : session_(std::move(portable), request.file, options_of(request)) {}
  const std::map<std::string, dim_range>& symbols() const override { return session_.portable().symbols; }
  std::shared_ptr<const loaded_model> at(const dim_bindings& sizes) override {
    return std::make_shared<session_model>(session_.at(sizes));
  }

 private:
  session session_;
};

}  // namespace
}  // namespace kiln

extern "C" __attribute__((visibility("default"))) const kiln::compiler_entry* kiln_compiler_entry() {
  static const kiln::compiler_entry entry{
      .build = kiln::kiln_build(),
      .open = [](kiln::program portable, const kiln::model_request& request) -> std::unique_ptr<kiln::model_source> {
        return std::make_unique<kiln::session_source>(std::move(portable), request);
      }};
  return &entry;
}
