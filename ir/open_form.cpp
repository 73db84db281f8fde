#include "ir/open_form.hpp"

namespace kiln {
namespace {

constexpr const char* all_sizes = "all";

std::string entry_of(const std::string& payload, processor on) {
  return (on == processor::cpu ? "sizes:" : "gpu_sizes:") + payload;
}

}  // namespace

void record_open_form(program& p, const std::string& payload, processor on, const std::string& missing) {
  p.metadata[entry_of(payload, on)] = missing.empty() ? all_sizes : missing;
}

std::optional<std::string> recorded_missing_form(const program& p, const std::string& payload, processor on) {
  const auto found = p.metadata.find(entry_of(payload, on));
  if (found == p.metadata.end()) return std::nullopt;
  return found->second == all_sizes ? std::string() : found->second;
}

}  // namespace kiln
