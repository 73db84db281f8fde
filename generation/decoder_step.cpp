#include "generation/decoder_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>

#include "ir/bind_shapes.hpp"
#include "ir/error.hpp"
#include "ir/ops/cache_update.hpp"

namespace kiln {
namespace {

// Symbols along the axes of the past have no elements before the first step.
std::set<std::string> past_symbols(const decoder_ports& ports, const program& model) {
  const auto parameters = model.main().parameters();
  std::set<std::string> symbols;
  if (const auto rows = model.metadata.find(cache_length); rows != model.metadata.end()) symbols.insert(rows->second);
  for (const state_port& s : ports.states)
    if (s.input && s.axis && !s.in_place) symbols.merge(parameters[*s.input].type().dims[*s.axis].symbols());
  return symbols;
}

shape of_dims(element_type type, std::vector<dim> dims) { return {type, std::move(dims)}; }

// All elements [rows, columns] as a tensor of `type`, or of its last row where the input has rank 1.
std::vector<std::byte> stored(const std::vector<std::int64_t>& values, const shape& type) {
  std::vector<std::byte> bytes(type.bytes());
  for (std::int64_t i = 0, n = type.element_count(); i < n; ++i)
    store_integer(type.type, bytes.data(), i, values[static_cast<std::size_t>(i)]);
  return bytes;
}

}  // namespace

decoder_step::decoder_step(session& model)
    : session_(model), ports_(recognize_decoder(model.portable())), parameters_(model.portable().main().parameters()) {
  for (std::size_t i = 0; i < ports_.states.size(); ++i) {
    if (ports_.states[i].input) state_of_input_[*ports_.states[i].input] = i;
    if (ports_.states[i].output) state_of_output_[*ports_.states[i].output] = i;
  }
  inputs_.resize(parameters_.size());
  outputs_.resize(model.portable().main().outputs().size());
  for (const std::string& symbol : past_symbols(ports_, model.portable()))
    if (auto found = model.portable().symbols.find(symbol); found != model.portable().symbols.end())
      if (const dim_range& range = found->second; range.min > 0)
        throw error(error_kind::unsupported,
                    fmt::format("dimension '{}': the file needs at least {}, and the first step has no past; compile "
                                "the model with --dim {}=0:MAX",
                                symbol, range.min, symbol));
}

std::optional<std::int64_t> decoder_step::fixed_sequence() const {
  const dim& d = parameters_[ports_.tokens].type().dims[1];
  return d.is_static() ? std::optional(d.value()) : std::nullopt;
}

std::optional<std::int64_t> decoder_step::fixed_batch() const {
  const dim& d = parameters_[ports_.tokens].type().dims[0];
  return d.is_static() ? std::optional(d.value()) : std::nullopt;
}

std::int64_t decoder_step::vocabulary() const {
  return model().main().outputs()[ports_.logits].type().dims.back().value();
}

// How many values of an integer input are valid, if the compiler found out (aot/input_ranges.hpp).
std::optional<std::int64_t> decoder_step::recorded_range(std::size_t place) const {
  const auto found = model().metadata.find("range:" + module::parameter_name(parameters_[place]));
  if (found == model().metadata.end()) return std::nullopt;
  std::int64_t limit = 0;
  const std::string& text = found->second;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), limit);
  return problem == std::errc() ? std::optional(limit) : std::nullopt;
}

std::int64_t decoder_step::known_ids() const { return recorded_range(ports_.tokens).value_or(vocabulary()); }

std::optional<std::int64_t> decoder_step::positions() const {
  const auto place = ports_.place_of(input_role::positions);
  return place ? recorded_range(*place) : std::nullopt;
}

std::vector<std::int64_t> decoder_step::values_of(input_role role, const step_ids& ids,
                                                  const encoded_prompt* encoded) const {
  const std::int64_t total = ids.past + ids.sequence;
  switch (role) {
    case input_role::tokens: return ids.tokens;
    case input_role::mask: return ids.mask;
    case input_role::positions: return ids.positions;
    case input_role::past_length: return {ids.past};
    case input_role::total_length: return {total};
    case input_role::logits_row: return {ids.sequence - 1};
    case input_role::last_keys: return std::vector(static_cast<std::size_t>(ids.batch), total - 1);
    case input_role::cache_branch: return {ids.past > 0 ? 1 : 0};
    case input_role::encoder_mask: return encoded ? encoded->mask : std::vector<std::int64_t>{};
    default: return {};
  }
}

shape decoder_step::input_shape(std::size_t place, const step_ids& ids, const state_types& states,
                                const encoded_prompt* encoded) const {
  const shape& declared = parameters_[place].type();
  const auto like = [&](std::vector<dim> dims) { return of_dims(declared.type, std::move(dims)); };
  const bool flat = declared.rank() == 1;
  switch (ports_.inputs[place]) {
    case input_role::tokens: return like({ids.batch, ids.sequence});
    case input_role::mask: return like({ids.batch, ids.past + ids.sequence});
    case input_role::positions:
      return declared.rank() == 0 ? declared : flat ? like({ids.sequence}) : like({ids.batch, ids.sequence});
    case input_role::last_keys: return flat ? like({ids.batch}) : like({ids.batch, 1});
    case input_role::encoder_mask: return encoded ? like({encoded->type.dims[0], encoded->type.dims[1]}) : declared;
    case input_role::encoder_states: return encoded ? encoded->type : declared;
    case input_role::state:
      if (auto found = states.find(ports_.states[state_of_input_.at(place)].key); found != states.end())
        return found->second;
      return declared;
    default: return declared;
  }
}

dim_bindings decoder_step::sizes_of(const step_ids& ids, std::vector<shape>& shapes, const state_types& states,
                                    const encoded_prompt* encoded) const {
  std::vector<given_shape> given;
  dim_bindings branch;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& name = module::parameter_name(parameters_[i]);
    shapes.push_back(input_shape(i, ids, states, encoded));
    if (shapes.back().is_static()) given.push_back({name, parameters_[i].type(), shapes.back()});
    const auto values = values_of(ports_.inputs[i], ids, encoded);
    if (is_float(shapes.back().type) || values.empty() || values.size() > max_value_elements) continue;
    for (std::size_t element = 0; element < values.size(); ++element)
      if (auto symbol = value_symbol(name, static_cast<std::int64_t>(element)).str(); model().symbols.contains(symbol))
        branch[symbol] = values[element];
  }
  dim_bindings sizes = bind_shapes(given);
  sizes.merge(branch);
  // States that are not there yet.
  for (const std::string& symbol : past_symbols(ports_, model())) sizes.emplace(symbol, ids.past);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    shapes[i] = shapes[i].substitute(sizes);
    if (!shapes[i].is_static())
      throw error(error_kind::unsupported,
                  fmt::format("input '{}': {} has a dimension that decoding does not determine; fix it when the model "
                              "is compiled",
                              module::parameter_name(parameters_[i]), shapes[i].str()));
  }
  return sizes;
}

// Caches have room for a power of two of rows, so that most steps find enough.
void decoder_step::give_caches_room(const step_ids& ids, sequence_state& state) {
  constexpr std::int64_t least = 256;
  const std::int64_t needed = ids.past + ids.sequence;
  std::int64_t room = least;
  while (room < needed) room *= 2;
  for (const state_port& s : ports_.states) {
    if (!s.in_place) continue;
    state_tensor& tensor = state.tensors[s.key];
    const bool enough = tensor.rows && tensor.type.dims[*s.axis].value() >= needed;
    if (enough) continue;
    shape type = parameters_[*s.input].type();
    type.dims[*s.axis] = room;
    for (dim& d : type.dims)
      if (!d.is_static()) d = ids.batch;
    give_room(session_.resources().device(), tensor, std::move(type), *s.axis, ids.past, room);
  }
}

void decoder_step::add_zeros(const std::vector<shape>& shapes, sequence_state& state, std::vector<std::string>& added) {
  for (const auto& [place, index] : state_of_input_) {
    const std::string& key = ports_.states[index].key;
    if (state.tensors.contains(key)) continue;
    state_tensor zeros{shapes[place], {}, {}};
    device& on = session_.resources().device();
    const auto bytes = zeros.now.at_least(on, zeros.type.bytes());
    on.fill_zero(bytes.data(), bytes.size());
    state.tensors.emplace(key, std::move(zeros));
    added.push_back(key);
  }
}

std::vector<float> decoder_step::last_logits(std::span<const std::byte> logits, const shape& type, std::int64_t batch) {
  const std::int64_t width = type.dims.back().value(), rows = type.element_count() / width / batch;
  const std::size_t row_bytes = storage_bytes(type.type, static_cast<std::size_t>(width));
  std::vector<float> result;
  std::vector<std::byte> row(row_bytes);
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::size_t at = static_cast<std::size_t>((b + 1) * rows - 1) * row_bytes;
    session_.resources().device().download(row.data(), logits.data() + at, row_bytes);
    copied_bytes_ += row_bytes;
    for (std::int64_t i = 0; i < width; ++i)
      result.push_back(static_cast<float>(load_element(type.type, row.data(), i)));
  }
  return result;
}

std::vector<float> decoder_step::run(const step_ids& ids, sequence_state& state, const encoded_prompt* encoded) {
  device& on = session_.resources().device();
  give_caches_room(ids, state);
  state_types states;
  for (const auto& [key, tensor] : state.tensors) states.emplace(key, tensor.type);
  std::vector<shape> shapes;
  const dim_bindings sizes = sizes_of(ids, shapes, states, encoded);
  const auto begin = std::chrono::steady_clock::now();
  const std::shared_ptr<instance> planned = session_.at(sizes);
  planning_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const plan& plan = planned->executable().plan();
  const bool later = ids.past > 0;

  std::vector<std::string> added;
  add_zeros(shapes, state, added);
  std::vector<executable::input_span> inputs;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const input_role role = ports_.inputs[i];
    if (role == input_role::state) {
      inputs.push_back(state.tensors.at(ports_.states[state_of_input_.at(i)].key).contents());
    } else if (role == input_role::encoder_states) {
      inputs.emplace_back(encoded->states.data(), encoded->type.bytes());
    } else {
      const auto bytes = stored(values_of(role, ids, encoded), shapes[i]);
      const auto memory = inputs_[i].at_least(on, bytes.size());
      on.upload(memory.data(), bytes.data(), bytes.size());
      copied_bytes_ += bytes.size();
      inputs.push_back(memory);
    }
  }
  // A tensor that is written once is written beside the states in later steps, and dropped.
  const auto carried = [&](std::size_t output) -> const state_port* {
    const auto found = state_of_output_.find(output);
    if (found == state_of_output_.end()) return nullptr;
    const state_port& port = ports_.states[found->second];
    return port.written_once && later ? nullptr : &port;
  };
  std::vector<executable::output_span> outputs;
  std::map<std::string, state_tensor> fresh;
  for (std::size_t o = 0; o < plan.outputs.size(); ++o) {
    const state_port* port = carried(o);
    if (!port && o >= outputs_.size()) outputs_.resize(o + 1);
    growing_memory* memory = &outputs_[o];
    if (port) {
      auto found = state.tensors.find(port->key);
      memory = found != state.tensors.end() ? &found->second.next : &fresh[port->key].next;
    }
    outputs.push_back(memory->at_least(on, plan.outputs[o].bytes));
  }
  on.synchronize();  // the run may use another stream than the uploads
  try {
    // Each number of ids has its own plan, which runs once: a graph would not pay.
    const auto runner = planned->make_runner(graph_policy::off);
    runner->run(inputs, outputs);
    patches_ += runner->context().report().patches;
  } catch (...) {
    for (const std::string& key : added) state.tensors.erase(key);
    throw;
  }
  state.tensors.merge(fresh);
  for (const state_port& s : ports_.states)
    if (s.in_place) state.tensors.at(s.key).rows->used = ids.past + ids.sequence;
  for (std::size_t o = 0; o < plan.outputs.size(); ++o)
    if (const state_port* port = carried(o)) {
      state_tensor& tensor = state.tensors.at(port->key);
      std::swap(tensor.now, tensor.next);
      tensor.type = plan.outputs[o].type;
    }
  return last_logits(outputs[ports_.logits], plan.outputs[ports_.logits].type, ids.batch);
}

}  // namespace kiln
