#include "mlir_bridge/candidates.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>

#include "ir/error.hpp"
#include "llvm/Support/xxhash.h"
#include "mlir_bridge/back_ends/printed.hpp"
#include "mlir_bridge/generation.hpp"

namespace kiln {

namespace {

constexpr std::array<std::size_t, 4> most_candidates{1, 8, 64, std::numeric_limits<std::size_t>::max()};

using code_fingerprint = std::array<std::uint64_t, 2>;

code_fingerprint fingerprint(const std::string& code, const native_kernel& around) {
  std::vector<std::byte> bytes = serialize(around);
  const auto* text = reinterpret_cast<const std::byte*>(code.data());
  bytes.insert(bytes.end(), text, text + code.size());
  auto hash = llvm::xxh3_128bits({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return {hash.low64, hash.high64};
}

// Returns the fingerprint of the code that the generator emits with this configuration.
code_fingerprint generated(const portable_kernel& kernel, const target_row& target,
                           const kernel_configuration& configuration) {
  generation g = begin_generation(kernel, target, configuration);
  g.emit();
  return fingerprint(printed([&](auto& stream) { g.code->print(stream); }),
                     {.object = {}, .scratch = g.emitter->scratch(), .launches = g.emitter->launches()});
}

// Returns nullopt if the generator refuses the configuration, for example because it needs too much shared memory.
std::optional<code_fingerprint> generated_if_possible(const portable_kernel& kernel, const target_row& target,
                                                      const kernel_configuration& configuration) {
  try {
    return generated(kernel, target, configuration);
  } catch (const error& refusal) {
    if (refusal.kind() != error_kind::unsupported) throw;
    return std::nullopt;
  }
}

}  // namespace

std::vector<kernel_configuration> candidate_configurations(const portable_kernel& kernel, const target_row& target,
                                                           tuning_effort effort) {
  const std::size_t most = most_candidates[static_cast<std::size_t>(effort)];
  const kernel_configuration standard;
  std::vector<kernel_configuration> result{standard};
  if (most == 1) return result;
  std::set<code_fingerprint> seen{generated(kernel, target, standard)};
  generation g = begin_generation(kernel, target, standard);
  std::vector<codegen::candidate> space = g.generator.space(*g.emitter);
  std::ranges::stable_sort(space, {}, &codegen::candidate::cost);
  for (codegen::candidate& c : space) {
    if (result.size() == most) break;
    auto code = generated_if_possible(kernel, target, c.configuration);
    if (code && seen.insert(*code).second) result.push_back(std::move(c.configuration));
  }
  return result;
}

}  // namespace kiln
