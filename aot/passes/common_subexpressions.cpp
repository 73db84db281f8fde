#include "aot/passes/common_subexpressions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/ops/structure.hpp"

namespace kiln {
namespace {

// Constants of one type and leading bytes.
std::string constant_key(const literal& data) {
  auto head = data.bytes().first(std::min<std::size_t>(data.bytes().size(), 64));
  return data.type().str() + std::string(reinterpret_cast<const char*>(head.data()), head.size());
}

}  // namespace

bool common_subexpressions::apply(module& m) const {
  std::unordered_map<std::string, std::vector<instruction*>> constants;
  std::unordered_map<std::string, instruction*> computed;
  std::unordered_map<const instruction*, std::size_t> numbers;
  auto use = [&](instruction& duplicate, instruction& first) {
    for (std::uint32_t i = 0; i < duplicate.outputs().size(); ++i) m.replace({&duplicate, i}, {&first, i});
  };
  bool changed = false;
  for (instruction& at : m.instructions()) {
    numbers.emplace(&at, numbers.size());
    if (at.op().is<parameter>() || !at.bodies().empty()) continue;
    if (const literal* data = module::constant(at.output())) {
      auto& equal_heads = constants[constant_key(*data)];
      auto found = std::find_if(equal_heads.begin(), equal_heads.end(), [&](instruction* other) { return *module::constant(other->output()) == *data; });
      if (found == equal_heads.end()) equal_heads.push_back(&at);
      else use(at, **found), changed = true;
      continue;
    }
    std::string key = at.op().str();
    for (value input : at.inputs()) key += fmt::format(" {}.{}", numbers.at(input.producer), input.index);
    auto [found, fresh] = computed.try_emplace(std::move(key), &at);
    if (!fresh) use(at, *found->second), changed = true;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
