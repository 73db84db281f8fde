#include "aot/passes/common_subexpressions.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/ops/elementwise.hpp"
#include "ir/ops/structure.hpp"

namespace kiln {
namespace {

std::size_t combined(std::size_t seed, std::size_t hash) {
  return seed ^ (hash + 0x9e3779b97f4a7c15 + (seed << 6) + (seed >> 2));
}

// Equal constants have equal hashes. Only the leading bytes are hashed.
std::size_t hash_of(const literal& data) {
  auto head = data.bytes().first(std::min<std::size_t>(data.bytes().size(), 64));
  std::size_t hash = std::hash<std::string_view>()({reinterpret_cast<const char*>(head.data()), head.size()});
  return combined(combined(hash, data.bytes().size()), static_cast<std::size_t>(data.type().type));
}

// Elementwise operations are hashed by name only, which is sufficient. The others also need the text of their
// attributes, which is expensive.
std::size_t hash_of(const instruction& at) {
  const operation& op = at.op();
  std::size_t hash =
      op.is<elementwise>() ? std::hash<std::string_view>()(op.name()) : std::hash<std::string>()(op.str());
  for (value input : at.inputs())
    hash = combined(combined(hash, std::hash<const void*>()(input.producer)), input.index);
  return hash;
}

}  // namespace

bool common_subexpressions::apply(module& m) const {
  std::unordered_multimap<std::size_t, instruction*> constants, computed;
  computed.reserve(m.instructions().size());
  // Returns the first instruction with this hash that equals `at`. If there is none, records `at`.
  auto first_equal = [](auto& seen, std::size_t hash, instruction& at, auto equal) -> instruction* {
    auto [begin, end] = seen.equal_range(hash);
    auto found = std::find_if(begin, end, [&](const auto& entry) { return equal(*entry.second); });
    if (found != end) return found->second;
    seen.emplace(hash, &at);
    return nullptr;
  };
  auto use = [&](instruction& duplicate, instruction& first) {
    for (std::uint32_t i = 0; i < duplicate.outputs().size(); ++i) m.replace({&duplicate, i}, {&first, i});
  };
  bool changed = false;
  for (instruction& at : m.instructions()) {
    if (at.op().is<parameter>() || !at.bodies().empty()) continue;
    instruction* first = nullptr;
    if (const literal* data = module::constant(at.output()))
      first = first_equal(constants, hash_of(*data), at,
                          [&](instruction& other) { return *module::constant(other.output()) == *data; });
    else
      first = first_equal(computed, hash_of(at), at,
                          [&](instruction& other) { return other.inputs() == at.inputs() && other.op() == at.op(); });
    if (first) use(at, *first), changed = true;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
