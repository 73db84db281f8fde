#include "generation/state_pairs.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include "generation/port_names.hpp"
#include "ir/ops/bounded.hpp"

namespace kiln {
namespace {

// Number of operations between a parameter and each instruction that depends on it.
std::map<const instruction*, std::size_t> distances_from(const instruction* parameter) {
  std::map<const instruction*, std::size_t> distances{{parameter, 0}};
  std::queue<const instruction*> next;
  for (next.push(parameter); !next.empty(); next.pop())
    for (const instruction* user : next.front()->users())
      if (distances.emplace(user, distances.at(next.front()) + 1).second) next.push(user);
  return distances;
}

struct fit {
  std::optional<std::size_t> axis;
  bool written_once = false;
};

// `counted`: data says how many rows of the output there are.
std::optional<fit> fit_of(const shape& input, const shape& output, const dim& sequence, const step_flag& flag,
                          bool counted) {
  const auto& branch = flag.symbol;
  if (input.type != output.type || input.rank() != output.rank()) return std::nullopt;
  const shape later = branch ? output.substitute({{*branch, 1}}) : output;
  std::vector<std::size_t> grown;
  bool fits = true;
  for (std::size_t a = 0; a < input.rank(); ++a) {
    if (later.dims[a] == input.dims[a]) continue;
    fits &= later.dims[a] == input.dims[a] + sequence;
    grown.push_back(a);
  }
  if (fits && grown.size() <= 1) {
    // A branch on data gives both branches the same bounds. That of later steps gives no rows of what is written once.
    if (grown.empty()) return fit{std::nullopt, flag.is_data && counted};
    return fit{grown.front()};
  }
  if (branch && output.substitute({{*branch, 0}}) == input) return fit{std::nullopt, true};
  return std::nullopt;
}

}  // namespace

std::vector<state_port> pair_states(const program& p, const std::set<std::size_t>& open, const dim& sequence,
                                    const step_flag& flag) {
  const auto parameters = p.main().parameters();
  const auto& outputs = p.main().outputs();
  struct candidate {
    bool other_name;
    std::size_t distance, input, output;
    fit how;
    auto order() const { return std::tuple(other_name, distance, input, output); }
  };
  std::vector<candidate> candidates;
  for (std::size_t i : open) {
    const auto distances = distances_from(parameters[i].producer);
    const std::string key = state_key(module::parameter_name(parameters[i]));
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const bool counted = outputs[o].producer->op().is<bounded>();
      const auto how = fit_of(parameters[i].type(), outputs[o].type(), sequence, flag, counted);
      if (!how) continue;
      const auto far = distances.find(outputs[o].producer);
      const bool same_name = !key.empty() && key == state_key(p.main().output_names()[o]);
      if (far == distances.end() && !same_name) continue;  // the output does not depend on the input
      candidates.push_back(
          {!same_name, far == distances.end() ? std::numeric_limits<std::size_t>::max() : far->second, i, o, *how});
    }
  }
  std::ranges::sort(candidates, {}, &candidate::order);
  std::set<std::size_t> paired_inputs, paired_outputs;
  std::map<std::size_t, state_port> states;  // by input
  for (const candidate& c : candidates) {
    if (paired_inputs.contains(c.input) || paired_outputs.contains(c.output)) continue;
    paired_inputs.insert(c.input), paired_outputs.insert(c.output);
    const std::string name = module::parameter_name(parameters[c.input]), key = state_key(name);
    states.emplace(c.input, state_port{key.empty() ? name : key, c.input, c.output, c.how.axis, c.how.written_once});
  }
  std::vector<state_port> result;
  for (auto& [input, state] : states) result.push_back(std::move(state));
  return result;
}

}  // namespace kiln
