// Sessions, which libkiln.so provides for the C interface in libkiln_runtime.so.
#include "runtime/compiler_library.hpp"
#include "session/request_options.hpp"
#include "session/session.hpp"

namespace kiln {
namespace {

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

class session_source final : public model_source {
 public:
  session_source(program portable, const model_request& request)
      : session_(std::move(portable), request.file, options_of(request)) {}
  const std::map<std::string, dim_range>& symbols() const override { return session_.portable().symbols; }
  std::shared_ptr<const loaded_model> at(const dim_bindings& sizes) override {
    return std::make_shared<session_model>(session_.at(sizes));
  }
  void add_data_sizes(dim_bindings& sizes, const std::map<std::string, literal>& inputs) override {
    session_.add_data_sizes(sizes, inputs);
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
