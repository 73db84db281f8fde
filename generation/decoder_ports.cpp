#include "generation/decoder_ports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/bind_shapes.hpp"
#include "ir/error.hpp"
#include "ir/ops/cache_update.hpp"

namespace kiln {
namespace {

[[noreturn]] void refuse(const std::string& thing, const std::string& why) {
  throw error(error_kind::unsupported, thing + ": " + why);
}

std::string quoted(const std::string& what, const std::string& name) { return fmt::format("{} '{}'", what, name); }

std::vector<input_role> roles_of(const program& p) {
  std::vector<input_role> roles;
  for (value v : p.main().parameters()) roles.push_back(role_of(module::parameter_name(v), v.type()));
  return roles;
}

// Leaves one input of ids. One whose name says nothing is accepted if it is the only one.
std::size_t find_tokens(const program& p, std::vector<input_role>& roles) {
  const auto parameters = p.main().parameters();
  std::vector<std::size_t> named, others;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == input_role::tokens) named.push_back(i);
    if (roles[i] == input_role::unknown && is_integer(parameters[i].type().type) && parameters[i].type().rank() == 2)
      others.push_back(i);
  }
  const auto& found = named.empty() ? others : named;
  if (found.empty()) refuse("the model", "it has no input of token ids (integers [batch, sequence])");
  if (found.size() > 1)
    refuse(quoted("input", module::parameter_name(parameters[found[1]])),
           fmt::format("it could hold token ids, and so could '{}'", module::parameter_name(parameters[found[0]])));
  roles[found[0]] = input_role::tokens;
  return found[0];
}

std::optional<std::string> branch_symbol(const program& p, const std::vector<input_role>& roles) {
  const auto parameters = p.main().parameters();
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] != input_role::cache_branch) continue;
    const std::string symbol = value_symbol(module::parameter_name(parameters[i]), 0).str();
    if (p.symbols.contains(symbol)) return symbol;
  }
  return std::nullopt;
}

// Inputs that no output continues: what the encoder computed, or states that another model of the folder writes.
void place_unpaired(const program& p, std::set<std::size_t>& open, decoder_ports& ports) {
  const auto parameters = p.main().parameters();
  for (std::size_t i : open) {
    const std::string& name = module::parameter_name(parameters[i]);
    const shape& type = parameters[i].type();
    if (!is_float(type.type) || !names_state(name))
      refuse(quoted("input", name),
             fmt::format("{} has no known role in decoding, and no output of the same type continues it", type.str()));
    ports.inputs[i] = input_role::state;
    ports.states.push_back({state_key(name), i, std::nullopt, std::nullopt, true});
  }
}

// Caches that steps update in place (ir/ops/cache_update.hpp).
void place_caches(const program& p, decoder_ports& ports) {
  const auto parameters = p.main().parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = module::parameter_name(parameters[i]);
    if (name == cache_length) ports.inputs[i] = input_role::past_length;
    if (name == logits_row) ports.inputs[i] = input_role::logits_row;
    const auto& dims = parameters[i].type().dims;
    const auto room = std::ranges::find(dims, dim::symbol(cache_room));
    if (room == dims.end()) continue;
    const std::string key = state_key(name);
    ports.inputs[i] = input_role::state;
    state_port port{key.empty() ? name : key, i, std::nullopt, static_cast<std::size_t>(room - dims.begin())};
    port.in_place = true;
    ports.states.push_back(std::move(port));
  }
}

bool can_be_logits(const shape& type) {
  return is_float(type.type) && (type.rank() == 2 || type.rank() == 3) && type.dims.back().is_static();
}

std::size_t find_logits(const program& p, const std::set<std::size_t>& taken) {
  const auto& names = p.main().output_names();
  std::vector<std::size_t> found, named;
  for (std::size_t o = 0; o < names.size(); ++o) {
    if (taken.contains(o) || !can_be_logits(p.main().outputs()[o].type())) continue;
    found.push_back(o);
    if (names[o].find("logit") != std::string::npos) named.push_back(o);
  }
  const auto& best = named.empty() ? found : named;
  if (best.empty()) refuse("the model", "it has no output of logits (floats [batch, sequence, vocabulary])");
  if (best.size() > 1)
    refuse(quoted("output", names[best[1]]), fmt::format("it could be the logits, and so could '{}'", names[best[0]]));
  return best[0];
}

}  // namespace

std::optional<std::size_t> decoder_ports::place_of(input_role role) const {
  const auto found = std::ranges::find(inputs, role);
  return found == inputs.end() ? std::nullopt : std::optional<std::size_t>(found - inputs.begin());
}

bool decoder_ports::has_past() const {
  return std::ranges::any_of(states, [](const state_port& s) { return s.input && (s.output || s.in_place); });
}

decoder_ports recognize_decoder(const program& p) {
  decoder_ports ports;
  ports.inputs = roles_of(p);
  std::vector<state_port> caches;
  if (p.symbols.contains(cache_room)) place_caches(p, ports);
  caches.swap(ports.states);
  ports.tokens = find_tokens(p, ports.inputs);
  ports.branch = branch_symbol(p, ports.inputs);
  std::set<std::size_t> open;
  for (std::size_t i = 0; i < ports.inputs.size(); ++i)
    if (ports.inputs[i] == input_role::unknown) open.insert(i);
  const dim sequence = p.main().parameters()[ports.tokens].type().dims[1];
  const bool flag_is_data = !ports.branch && std::ranges::count(ports.inputs, input_role::cache_branch) > 0;
  ports.states = pair_states(p, open, sequence, {ports.branch, flag_is_data});
  std::set<std::size_t> taken;
  for (const state_port& s : ports.states) {
    ports.inputs[*s.input] = input_role::state;
    open.erase(*s.input), taken.insert(*s.output);
  }
  ports.states.insert(ports.states.end(), caches.begin(), caches.end());
  place_unpaired(p, open, ports);
  ports.logits = find_logits(p, taken);
  const auto& outputs = p.main().output_names();
  if (const auto found = std::ranges::find(outputs, std::string(next_ids));
      found != outputs.end() && p.symbols.contains(cache_room)) {
    ports.next_ids = static_cast<std::size_t>(found - outputs.begin());
    taken.insert(*ports.next_ids);
  }
  // The first model of a pair only writes states. Of several such outputs whose names say the same, the first is one.
  std::set<std::string> written;
  for (std::size_t o = 0; o < p.main().outputs().size(); ++o)
    if (o != ports.logits && !taken.contains(o) && written.insert(state_key(outputs[o])).second)
      ports.states.push_back({state_key(outputs[o]), std::nullopt, o, std::nullopt, false});
  return ports;
}

encoder_ports recognize_encoder(const program& p) {
  encoder_ports ports;
  ports.inputs = roles_of(p);
  const auto parameters = p.main().parameters();
  bool takes_ids = false;
  for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
    const shape& type = parameters[i].type();
    takes_ids |= ports.inputs[i] == input_role::tokens ||
                 (ports.inputs[i] == input_role::unknown && is_integer(type.type) && type.rank() == 2);
  }
  if (takes_ids) ports.tokens = find_tokens(p, ports.inputs);
  const auto& outputs = p.main().outputs();
  const auto found =
      std::ranges::find_if(outputs, [](value v) { return is_float(v.type().type) && v.type().rank() == 3; });
  if (found == outputs.end()) refuse("the encoder", "it has no output [batch, sequence, width]");
  ports.states = static_cast<std::size_t>(found - outputs.begin());
  return ports;
}

}  // namespace kiln
