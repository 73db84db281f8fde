#include "tools/session_view.hpp"

#include <spdlog/spdlog.h>

namespace kiln::tools {
namespace {

template <class... F>
struct cases : F... {
  using F::operator()...;
};

}  // namespace

void session_view::show(const session_event& event) {
  using namespace session_events;
  std::visit(cases{[&](const finalizing& e) {
                     if (!finalizing_) finalizing_.emplace("finalizing", output_);
                     finalizing_->update(e.done, e.total);
                   },
                   [&](const finalized&) {
                     if (finalizing_) finalizing_->finish();
                     finalizing_.reset();
                   },
                   [&](const entry_replaced& e) {
                     spdlog::warn("kernel cache: entry {} of kernel '{}' holds {}, the compiler makes {}: replaced",
                                  e.mismatch.key, e.mismatch.symbol, e.mismatch.cached, e.mismatch.compiled);
                   },
                   [&](const tuned& e) {
                     if (!tuning_) return;
                     tuning_->update(e.done, e.total);
                     if (e.done == e.total) tuning_->finish();
                   },
                   [](const warning& e) { spdlog::warn(e.text); }, [](const auto&) {}},
             event);
}

void session_view::begin_tuning() { tuning_.emplace("tuning", output_); }

}  // namespace kiln::tools
