#include "generation/decoder_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <utility>

#include "generation/widen_logits.hpp"
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

// Caches have room for 256 times a power of two of rows, so that most steps find enough.
std::int64_t room_for(std::int64_t rows) {
  std::int64_t room = 256;
  while (room < rows) room *= 2;
  return room;
}

std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() ? std::optional(number) : std::nullopt;
}

shape of_dims(element_type type, std::vector<dim> dims) { return {type, std::move(dims)}; }

// All elements [rows, columns] as a tensor of `type`, or of its last row where the input has rank 1.
std::vector<std::byte> stored(const std::vector<std::int64_t>& values, const shape& type) {
  std::vector<std::byte> bytes(type.bytes());
  for (std::int64_t i = 0, n = type.element_count(); i < n; ++i)
    store_integer(type.type, bytes.data(), i, values[static_cast<std::size_t>(i) % values.size()]);
  return bytes;
}

}  // namespace

decoder_step::decoder_step(session& model)
    : session_(model),
      ports_(recognize_decoder(model.portable())),
      parameters_(model.portable().main().parameters()),
      stream_(model.resources().device().own_stream()) {
  for (std::size_t i = 0; i < ports_.states.size(); ++i) {
    if (ports_.states[i].input) state_of_input_[*ports_.states[i].input] = i;
    if (ports_.states[i].output) state_of_output_[*ports_.states[i].output] = i;
  }
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
  return number_in(found->second);
}

std::int64_t decoder_step::known_ids() const { return recorded_range(ports_.tokens).value_or(vocabulary()); }

std::optional<std::int64_t> decoder_step::positions() const {
  const auto place = ports_.place_of(input_role::positions);
  std::optional<std::int64_t> least = place ? recorded_range(*place) : std::nullopt;
  // Tables that the model indexes with positions of its own (aot/index_limits.hpp).
  constexpr std::string_view prefix = "index_limit:";
  for (const auto& [key, text] : model().metadata)
    if (key.starts_with(prefix))
      if (const auto limit = number_in(text))
        if (const auto most = most_ids(dim::parse(std::string_view(key).substr(prefix.size())), *limit))
          least = std::min(least.value_or(*most), *most);
  return least;
}

// The most ids of a sequence for which `largest_index` is below `limit`: it grows with them.
std::optional<std::int64_t> decoder_step::most_ids(const dim& largest_index, std::int64_t limit) const {
  const std::vector<dim>& ids = parameters_[ports_.tokens].type().dims;
  const std::set<std::string> past = past_symbols(ports_, model());
  const auto fits = [&](std::int64_t count) {
    dim_bindings sizes;
    for (const std::string& symbol : ids[0].symbols()) sizes[symbol] = 1;
    for (const std::string& symbol : ids[1].symbols()) sizes[symbol] = past.empty() ? count : 1;
    for (const std::string& symbol : past) sizes[symbol] = count - 1;
    const dim index = largest_index.substitute(sizes);
    return index.is_static() ? std::optional(index.value() < limit) : std::nullopt;
  };
  if (fits(1) != true) return std::nullopt;                // it depends on something else
  constexpr std::int64_t endless = std::int64_t{1} << 30;  // its square is a number, too
  std::int64_t most = 1;
  for (std::int64_t step = endless / 2; step > 0; step /= 2)
    if (fits(most + step) == true) most += step;
  return most < endless ? std::optional(most) : std::nullopt;
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
      // Time, height and width of multimodal models: those of text are all the same.
      if (declared.rank() == 3) return like({declared.dims[0], ids.batch, ids.sequence});
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
    if (is_float(shapes.back().type) || values.empty()) continue;
    branch.merge(bind_values(model().symbols, name, literal::from_int64(values)));
  }
  dim_bindings sizes = bind_shapes(given);
  sizes.merge(branch);
  // States that are not there yet.
  for (const std::string& symbol : past_symbols(ports_, model())) sizes.emplace(symbol, ids.past);
  // Caches of the last positions only are as large as their window.
  constexpr std::string_view prefix = "cache_window:";
  for (const auto& [key, text] : model().metadata)
    if (key.starts_with(prefix))
      if (const auto window = number_in(text)) sizes.emplace(key.substr(prefix.size()), *window);
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

void decoder_step::give_caches_room(const step_ids& ids, sequence_state& state) {
  const std::int64_t needed = std::max(ids.expected, ids.past + ids.sequence), room = room_for(needed);
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

std::optional<std::int64_t> decoder_step::chunk() const {
  constexpr std::int64_t ids = 512;
  const bool in_place = std::ranges::any_of(ports_.states, &state_port::in_place);
  if (session_.resources().device().info().host_memory || !in_place || fixed_sequence()) return std::nullopt;
  return ids;
}

// The largest sizes of steps like this one before there must be more room. Empty if there are none.
dim_bindings decoder_step::room_of(const step_ids& ids, const state_types& states,
                                   const encoded_prompt* encoded) const {
  step_ids last = ids;
  last.past = room_for(std::max(ids.expected, ids.past + ids.sequence)) - ids.sequence;
  while (last.past > ids.past) {
    state_types grown = states;
    for (const state_port& s : ports_.states)
      if (auto found = grown.find(s.key); found != grown.end() && s.axis && !s.in_place && !s.written_once)
        found->second.dims[*s.axis] = found->second.dims[*s.axis] + (last.past - ids.past);
    last.mask.assign(static_cast<std::size_t>(ids.batch * (last.past + ids.sequence)), 1);
    std::vector<shape> shapes;
    dim_bindings sizes = sizes_of(last, shapes, grown, encoded);
    std::int64_t excess = 0;
    for (const auto& [name, value] : sizes)
      if (auto range = model().symbols.find(name); range != model().symbols.end())
        excess = std::max(excess, value - range->second.max);
    if (excess == 0) return sizes;
    last.past -= excess;
  }
  return {};
}

// The length of a prompt seldom occurs twice, so a prompt gets no plan for other sizes.
size_series* decoder_step::series_for(const step_ids& ids, const dim_bindings& sizes, const state_types& states,
                                      const encoded_prompt* encoded) {
  const bool is_chunk = ids.sequence == chunk();
  step_plan& plan = is_chunk ? chunks_ : few_;
  if (plan.series && plan.series->move_to(sizes)) {
    ++plan.served;
    return plan.series.get();
  }
  if (ids.past == 0 && !is_chunk) return nullptr;
  dim_bindings room = room_of(ids, states, encoded);
  if (plan.series) {
    patches_ += plan.series->runner().context().report().patches;
    if (plan.served == 1 && room == plan.room) plan.unserved = room;
    plan.series.reset();
  }
  if (room.empty() || room == plan.unserved) return nullptr;
  plan.room = std::move(room);
  plan.served = 1;
  const dim_bindings exact = exact_of(ids, sizes, plan.room);
  plan.series = session_.series(sizes, plan.room, exact,
                                is_chunk ? session::exact_kernels::ready : session::exact_kernels::compiled);
  if (!plan.series) plan.unserved = plan.room;
  return plan.series.get();
}

// Kernels of a GPU that serve all sizes are slower than those for one set of sizes, and steps of one id are many.
dim_bindings decoder_step::exact_of(const step_ids& ids, const dim_bindings& sizes, const dim_bindings& room) const {
  dim_bindings exact;
  if (session_.resources().device().info().host_memory || (ids.sequence != 1 && ids.sequence != chunk())) return exact;
  for (const auto& [name, value] : sizes)
    if (name != cache_room && room.at(name) == value) exact.emplace(name, value);
  return exact;
}

std::size_t decoder_step::patches() const {
  std::size_t sum = patches_;
  for (const step_plan* plan : {&few_, &chunks_})
    if (plan->series) sum += plan->series->runner().context().report().patches;
  return sum;
}

std::vector<float> decoder_step::last_logits(std::span<const std::byte> logits, const shape& type, std::int64_t batch) {
  const std::int64_t width = type.dims.back().value(), rows = type.element_count() / width / batch;
  const std::size_t row_bytes = storage_bytes(type.type, static_cast<std::size_t>(width));
  std::vector<float> result(static_cast<std::size_t>(batch * width));
  std::vector<std::byte> row(type.type == element_type::f32 ? 0 : row_bytes);
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::byte* from = logits.data() + static_cast<std::size_t>((b + 1) * rows - 1) * row_bytes;
    float* to = result.data() + b * width;
    copied_bytes_ += row_bytes;
    if (row.empty()) {
      session_.resources().device().download(to, from, row_bytes, stream_.get());
      continue;
    }
    session_.resources().device().download(row.data(), from, row_bytes, stream_.get());
    widen_logits(type.type, row, {to, static_cast<std::size_t>(width)});
  }
  return result;
}

// Inputs that are no state; of the others, nothing.
void decoder_step::upload_inputs(const step_ids& ids, const std::vector<shape>& shapes, const encoded_prompt* encoded) {
  std::vector<std::vector<std::byte>> tensors(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (const input_role role = ports_.inputs[i]; role != input_role::state && role != input_role::encoder_states)
      tensors[i] = stored(values_of(role, ids, encoded), shapes[i]);
  copied_bytes_ += inputs_.upload(session_.resources().device(), *stream_, tensors);
}

void decoder_step::check_state(const sequence_state& state, std::int64_t batch, std::int64_t length) const {
  const auto refuse = [](const std::string& key) {
    throw error(error_kind::corrupted, fmt::format("saved sequences: state '{}' does not fit the model", key));
  };
  for (const state_port& s : ports_.states) {
    if (!s.input) continue;
    const auto found = state.tensors.find(s.key);
    if (found == state.tensors.end()) refuse(s.key);
    const state_tensor& tensor = found->second;
    const shape& declared = parameters_[*s.input].type();
    if (tensor.type.type != declared.type || tensor.type.rank() != declared.rank()) refuse(s.key);
    if (tensor.rows.has_value() != s.in_place) refuse(s.key);
    if (s.in_place && (tensor.rows->axis != *s.axis || tensor.rows->used != length)) refuse(s.key);
    for (std::size_t i = 0; i < declared.rank(); ++i) {
      const std::int64_t size = tensor.type.dims[i].value();
      if (declared.dims[i].is_static() && declared.dims[i].value() != size) refuse(s.key);
      // give_caches_room() takes every open dimension of a cache but its rows for the batch.
      const bool is_batch = s.in_place ? !declared.dims[i].is_static() && i != *s.axis
                                       : declared.dims[i] == parameters_[ports_.tokens].type().dims[0];
      if (is_batch && size != batch) refuse(s.key);
    }
  }
}

std::vector<float> decoder_step::run(const step_ids& ids, sequence_state& state, const encoded_prompt* encoded) {
  finish();
  std::vector<float> logits;
  enqueue(ids, state, encoded, false, &logits);
  answered_ = started_;
  return logits;
}

bool decoder_step::runs_ahead() const {
  return ports_.next_ids && !session_.resources().device().info().host_memory && known_ids() >= vocabulary();
}

void decoder_step::start(const step_ids& ids, sequence_state& state, const encoded_prompt* encoded, bool after_last) {
  enqueue(ids, state, encoded, after_last, nullptr);
}

std::vector<std::int64_t> decoder_step::answer() {
  device& on = session_.resources().device();
  const found_ids& found = found_[answered_++ % found_.size()];
  const element_type type = parameters_[ports_.tokens].type().type;
  std::vector<std::byte> bytes(storage_bytes(type, static_cast<std::size_t>(found.batch)));
  found.there->synchronize();
  if (!aside_) aside_ = on.make_stream();
  on.download(bytes.data(), found.memory.data(), bytes.size(), aside_.get());
  copied_bytes_ += bytes.size();
  std::vector<std::int64_t> ids;
  for (std::int64_t r = 0; r < found.batch; ++r) ids.push_back(load_integer(type, bytes.data(), r));
  return ids;
}

void decoder_step::finish() {
  answered_ = started_;
  if (!std::exchange(in_flight_, false)) return;
  session_.resources().device().synchronize(stream_.get());
}

void decoder_step::enqueue(const step_ids& ids, sequence_state& state, const encoded_prompt* encoded, bool after_last,
                           std::vector<float>* logits) {
  device& on = session_.resources().device();
  give_caches_room(ids, state);
  state_types states;
  for (const auto& [key, tensor] : state.tensors) states.emplace(key, tensor.type);
  std::vector<shape> shapes;
  const dim_bindings sizes = sizes_of(ids, shapes, states, encoded);
  const auto begin = std::chrono::steady_clock::now();
  size_series* series = series_for(ids, sizes, states, encoded);
  const std::shared_ptr<instance> planned = series ? nullptr : session_.at(sizes);
  planning_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  const plan& plan = series ? series->now() : planned->executable().plan();
  const bool later = ids.past > 0;

  std::vector<std::string> added;
  add_zeros(shapes, state, added);
  upload_inputs(ids, shapes, encoded);
  const found_ids& before = found_[(started_ + 1) % found_.size()];
  found_ids& found = found_[started_ % found_.size()];
  std::vector<executable::input_span> inputs;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const input_role role = ports_.inputs[i];
    if (role == input_role::state)
      inputs.push_back(state.tensors.at(ports_.states[state_of_input_.at(i)].key).contents());
    else if (role == input_role::encoder_states) inputs.emplace_back(encoded->states.data(), encoded->type.bytes());
    else if (i == ports_.tokens && after_last) inputs.emplace_back(before.memory.data(), shapes[i].bytes());
    else inputs.push_back(inputs_[i]);
  }
  // A tensor that is written once is written beside the states in later steps, and dropped.
  const auto carried = [&](std::size_t output) -> const state_port* {
    const auto place = state_of_output_.find(output);
    if (place == state_of_output_.end()) return nullptr;
    const state_port& port = ports_.states[place->second];
    return port.written_once && later ? nullptr : &port;
  };
  std::vector<executable::output_span> outputs;
  std::map<std::string, state_tensor> fresh;
  for (std::size_t o = 0; o < plan.outputs.size(); ++o) {
    const state_port* port = carried(o);
    if (o >= outputs_.size()) outputs_.resize(o + 1);
    growing_memory* memory = o == ports_.next_ids ? &found.memory : &outputs_[o];
    if (port) {
      auto known = state.tensors.find(port->key);
      memory = known != state.tensors.end() ? &known->second.next : &fresh[port->key].next;
    }
    outputs.push_back(memory->at_least(on, plan.outputs[o].bytes));
  }
  // The memory of a prompt's runner goes when its run has ended: its context waits.
  try {
    const auto once = series ? nullptr : planned->make_runner(graph_policy::off);
    (series ? series->runner() : *once).run(inputs, outputs, *stream_);
    if (logits) *logits = last_logits(outputs[ports_.logits], plan.outputs[ports_.logits].type, ids.batch);
  } catch (...) {
    for (const std::string& key : added) state.tensors.erase(key);
    throw;
  }
  if (!logits) {
    in_flight_ = true;
    if (!found.there) found.there = on.make_event();
    found.there->record(stream_.get());
  }
  found.batch = ids.batch;
  ++started_;
  state.tensors.merge(fresh);
  for (const state_port& s : ports_.states)
    if (s.in_place) state.tensors.at(s.key).rows->used = ids.past + ids.sequence;
  for (std::size_t o = 0; o < plan.outputs.size(); ++o)
    if (const state_port* port = carried(o)) {
      state_tensor& tensor = state.tensors.at(port->key);
      std::swap(tensor.now, tensor.next);
      tensor.type = plan.outputs[o].type;
    }
}

}  // namespace kiln
