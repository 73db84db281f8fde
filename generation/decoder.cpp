#include "generation/decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "ir/bind_shapes.hpp"
#include "ir/sequence_errors.hpp"

namespace kiln {
namespace {

std::size_t longest(const id_rows& rows) {
  std::size_t most = 0;
  for (const auto& row : rows) most = std::max(most, row.size());
  return most;
}

literal integers(const shape& type, const std::vector<std::int64_t>& values) {
  std::vector<std::byte> bytes(type.bytes());
  for (std::size_t i = 0; i < values.size(); ++i)
    store_integer(type.type, bytes.data(), static_cast<std::int64_t>(i), values[i]);
  return {type, std::move(bytes)};
}

// An encoder has no logits, but an output that looks like them. It is narrower than the embedding of the ids.
void check_logits(const decoder_step& step) {
  const program& p = step.model();
  if (step.vocabulary() * 2 < step.known_ids())
    throw error(error_kind::unsupported,
                fmt::format("output '{}': {} is too narrow for logits of {} ids; the model is no decoder",
                            p.main().output_names()[step.ports().logits],
                            p.main().outputs()[step.ports().logits].type().str(), step.known_ids()));
}

// The states that later steps read must come from the first step.
void check_pair(const decoder_step& first, const decoder_step& later) {
  std::set<std::string> written;
  for (const state_port& s : first.ports().states)
    if (s.output) written.insert(s.key);
  const auto parameters = later.model().main().parameters();
  for (const state_port& s : later.ports().states)
    if (s.input && !written.contains(s.key))
      throw error(error_kind::unsupported, fmt::format("input '{}': the model of the first step has no output for it",
                                                       module::parameter_name(parameters[*s.input])));
}

}  // namespace

decoder::decoder(const decoder_models& models, std::int64_t context, std::int64_t chunk)
    : last_(std::make_unique<decoder_step>(*models.decoder)), encoder_(models.encoder) {
  if (models.first) {
    first_ = std::make_unique<decoder_step>(*models.first);
    check_pair(*first_, *last_);
  }
  check_logits(*last_);
  if (encoder_) encoder_ports_ = recognize_encoder(encoder_->portable());
  const decoder_step& begin = first_ ? *first_ : *last_;
  const auto encoder_input = begin.ports().place_of(input_role::encoder_states);
  if (encoder_input && !encoder_)
    throw error(error_kind::unsupported,
                fmt::format("input '{}': it is what an encoder computes; give the folder that holds the encoder too",
                            module::parameter_name(begin.model().main().parameters()[*encoder_input])));
  if (!first_)
    for (const state_port& s : last_->ports().states)
      if (s.input && !s.output && !s.in_place)
        throw error(error_kind::unsupported,
                    fmt::format("input '{}': no output of this model continues it; give the folder that holds the "
                                "decoder for the first step too",
                                module::parameter_name(last_->model().main().parameters()[*s.input])));
  if (!first_) chunk_ = static_cast<std::size_t>(chunk > 0 ? chunk : last_->chunk().value_or(0));
  context_ = last_->positions();
  if (first_)
    if (const auto most = first_->positions()) context_ = std::min(context_.value_or(*most), *most);
  if (context > 0) context_ = context_ ? std::min(*context_, context) : context;
}

bool decoder::takes_padding() const {
  const auto takes = [](const decoder_step& step) { return step.ports().place_of(input_role::mask).has_value(); };
  return !encoder_ && takes(*last_) && (!first_ || takes(*first_));
}

bool decoder::takes_encoder_padding() const {
  const auto takes = [](const decoder_step& step) {
    return step.ports().place_of(input_role::encoder_mask).has_value();
  };
  return std::ranges::count(encoder_ports_.inputs, input_role::mask) == 1 && takes(*last_) &&
         (!first_ || takes(*first_));
}

// Whether a mask hides padding depends on the model: positions may come from the mask or not, some count keys from the
// left, and some read the mask of one row for all rows. So each row is run alone, and its answer must be that of the
// batch.
void decoder::check_padded_answer(const id_rows& rows, std::span<const float> logits) {
  const auto width = static_cast<std::size_t>(vocabulary());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto padded = logits.subspan(r * width, width);
    step_ids alone;
    alone.sequence = static_cast<std::int64_t>(rows[r].size());
    alone.tokens = rows[r];
    alone.mask.assign(rows[r].size(), 1);
    alone.positions.resize(rows[r].size());
    std::iota(alone.positions.begin(), alone.positions.end(), std::int64_t{0});
    sequence_state state;
    const std::vector<float> expected = (first_ ? *first_ : *last_).run(alone, state, nullptr);
    float largest = 0, difference = 0;
    for (std::size_t i = 0; i < width; ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      const float d = std::abs(expected[i] - padded[i]);
      difference = std::isnan(d) ? std::numeric_limits<float>::infinity() : std::max(difference, d);
    }
    constexpr float tolerance = 0.02f;  // of the largest logit; int8 models round by the largest value of a batch
    if (difference > tolerance * largest)
      throw error(error_kind::unsupported,
                  fmt::format("prompts of different lengths: padding changes the answer of this model to prompt {} (a "
                              "logit by {:.2g} of {:.2g}); give prompts of one length, or one prompt at a time",
                              r, difference, largest));
  }
}

void decoder::check_padding(const id_rows& rows) const {
  if (std::ranges::all_of(rows, [&](const auto& row) { return row.size() == rows[0].size(); })) return;
  if (now_.past > 0) throw error(error_kind::usage, "ids: only the first rows of a batch may have different lengths");
  if (!takes_padding())
    throw error(
        error_kind::unsupported,
        "prompts of different lengths: the model takes no mask with positions, so that padding would change its "
        "answers; give prompts of one length, or one prompt at a time");
}

void decoder::check(const id_rows& rows) const {
  if (rows.empty()) throw error(error_kind::usage, "ids: there is no prompt");
  if (!now_.history.empty() && rows.size() != now_.history.size())
    throw error(error_kind::usage, fmt::format("ids: {} rows for {} sequences", rows.size(), now_.history.size()));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].empty()) throw error(invalid_sequence, fmt::format("prompt {}: it is empty; give at least one id", r));
    for (std::int64_t id : rows[r])
      if (id < 0 || id >= last_->known_ids())
        throw error(invalid_sequence,
                    fmt::format("prompt {}: id {} is not in the vocabulary of {} ids", r, id, last_->known_ids()));
  }
  check_padding(rows);
  const auto total = now_.past + static_cast<std::int64_t>(longest(rows));
  if (context_ && total > *context_)
    throw error(context_full,
                fmt::format("context: {} ids do not fit into the {} that the model takes; shorten the prompt, or ask "
                            "for fewer new ids",
                            total, *context_));
  if (const auto fixed = last_->fixed_batch(); fixed && *fixed != static_cast<std::int64_t>(rows.size()))
    throw error(error_kind::usage, fmt::format("{} prompts: the model takes batches of {}", rows.size(), *fixed));
  if (takes_one_by_one(longest(rows)) && *last_->fixed_sequence() != 1)
    throw error(error_kind::unsupported,
                fmt::format("prompt of {} ids: the model takes {} at a time", longest(rows), *last_->fixed_sequence()));
  if (encoder_ && !now_.encoded) throw error(error_kind::usage, "encoder: encode a prompt first");
  if (now_.encoded && now_.encoded->type.dims[0] != dim(static_cast<std::int64_t>(rows.size())))
    throw error(error_kind::usage,
                fmt::format("{} prompts: the encoder has read {}", rows.size(), now_.encoded->type.dims[0].value()));
}

step_ids decoder::step_of(const id_rows& rows, std::int64_t expected) const {
  step_ids ids;
  ids.expected = expected;
  ids.batch = static_cast<std::int64_t>(rows.size());
  ids.sequence = static_cast<std::int64_t>(rows[0].size());
  ids.past = now_.past;
  const std::size_t past = static_cast<std::size_t>(now_.past);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto& mask = now_.masks[r];
    const std::size_t total = past + rows[r].size();
    ids.tokens.insert(ids.tokens.end(), rows[r].begin(), rows[r].end());
    ids.mask.insert(ids.mask.end(), mask.begin(), mask.begin() + static_cast<std::ptrdiff_t>(total));
    std::int64_t position = std::accumulate(mask.begin(), mask.begin() + now_.past, std::int64_t{0});
    for (std::size_t i = past; i < total; ++i) {
      ids.positions.push_back(position);
      position += mask[i];
    }
  }
  return ids;
}

std::vector<float> decoder::run(const id_rows& rows, std::int64_t expected) {
  decoder_step& step = now_.past == 0 && first_ ? *first_ : *last_;
  const encoded_prompt* encoded = now_.encoded ? &*now_.encoded : nullptr;
  std::vector<float> logits;
  if (!step.ports().has_past() && !first_) {
    // Without a past, every step sees all ids.
    id_rows all = now_.history;
    for (std::size_t r = 0; r < rows.size(); ++r) all[r].insert(all[r].end(), rows[r].begin(), rows[r].end());
    const std::int64_t past = std::exchange(now_.past, 0);
    const step_ids ids = step_of(all);
    now_.past = past;
    logits = step.run(ids, now_.state, encoded);
  } else {
    logits = step.run(step_of(rows, expected), now_.state, encoded);
  }
  now_.past += static_cast<std::int64_t>(rows[0].size());
  for (std::size_t r = 0; r < rows.size(); ++r)
    now_.history[r].insert(now_.history[r].end(), rows[r].begin(), rows[r].end());
  return logits;
}

bool decoder::takes_one_by_one(std::size_t length) const {
  const auto fixed = last_->fixed_sequence();
  return fixed && length != static_cast<std::size_t>(*fixed) && !(first_ && now_.past == 0);
}

std::vector<float> decoder::append(const id_rows& rows) {
  check(rows);
  const id_rows masks = now_.masks;
  const bool uneven = std::ranges::any_of(rows, [&](const auto& row) { return row.size() != rows[0].size(); });
  try {
    std::vector<float> logits = run_padded(rows);
    if (uneven) check_padded_answer(rows, logits);
    return logits;
  } catch (...) {
    now_.masks = masks;
    if (uneven) now_.state = {}, now_.history.clear(), now_.past = 0;  // no other rows were there before
    throw;
  }
}

// Many ids are given in chunks of a length for which there may be kernels. Room for all of them, and for the next id,
// is made at once.
template <class Run>
void decoder::in_parts(const id_rows& rows, Run&& run) {
  const std::size_t length = rows[0].size();
  const std::int64_t expected = now_.past + static_cast<std::int64_t>(length) + 1;
  if (chunk_ == 0 || length < chunk_) return run(rows, 0, true);
  for (std::size_t begin = 0; begin < length; begin += chunk_) {
    const std::size_t end = std::min(begin + chunk_, length);
    id_rows part;
    for (const auto& row : rows)
      part.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(begin),
                        row.begin() + static_cast<std::ptrdiff_t>(end));
    run(part, expected, end == length);
  }
}

std::vector<float> decoder::run_padded(const id_rows& rows) {
  const std::size_t length = longest(rows);
  id_rows padded = rows;
  now_.masks.resize(rows.size()), now_.history.resize(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::size_t missing = length - rows[r].size();
    padded[r].insert(padded[r].begin(), missing, 0);
    now_.masks[r].resize(static_cast<std::size_t>(now_.past));
    now_.masks[r].insert(now_.masks[r].end(), missing, 0);
    now_.masks[r].insert(now_.masks[r].end(), rows[r].size(), 1);
  }
  return run_rows(padded);
}

std::vector<float> decoder::run_rows(const id_rows& rows) {
  const std::size_t length = rows[0].size();
  std::vector<float> logits;
  if (!takes_one_by_one(length)) {
    in_parts(rows, [&](const id_rows& part, std::int64_t expected, bool) { logits = run(part, expected); });
    return logits;
  }
  for (std::size_t i = 0; i < length; ++i) {
    id_rows column;
    for (const auto& row : rows) column.push_back({row[i]});
    logits = run(column);
  }
  return logits;
}

bool decoder::runs_ahead() const {
  return !first_ && !last_->fixed_sequence() && last_->ports().has_past() && last_->runs_ahead();
}

// The ids of these steps are not kept: a decoder with a past does not need them.
void decoder::start_step(const id_rows& rows, bool after_last) {
  check(rows);
  const id_rows masks = now_.masks;
  now_.masks.resize(rows.size()), now_.history.resize(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    now_.masks[r].resize(static_cast<std::size_t>(now_.past));
    now_.masks[r].insert(now_.masks[r].end(), rows[r].size(), 1);
  }
  try {
    in_parts(rows, [&](const id_rows& part, std::int64_t expected, bool is_last) {
      last_->start(step_of(part, expected), now_.state, now_.encoded ? &*now_.encoded : nullptr, after_last);
      if (!is_last) last_->skip_answer();
      now_.past += static_cast<std::int64_t>(part[0].size());
    });
  } catch (...) {
    now_.masks = masks;
    throw;
  }
}

void decoder::start(const id_rows& rows) {
  if (std::ranges::any_of(rows, [&](const auto& row) { return row.size() != rows[0].size(); }))
    throw error(error_kind::usage, "ids: rows of different lengths do not run ahead");
  start_step(rows, false);
}

void decoder::go_on() { start_step(id_rows(now_.history.size(), {0}), true); }

std::vector<std::int64_t> decoder::answer() { return last_->answer(); }

void decoder::finish() { last_->finish(); }

decoder::~decoder() {
  try {
    finish();
  } catch (const error&) {
    // The device is lost, so nothing is running any more.
  }
}

namespace {

// The sizes that the given inputs of an encoder have.
dim_bindings sizes_of(std::span<const value> parameters, const std::map<std::string, literal>& given) {
  std::vector<given_shape> shapes;
  for (value v : parameters)
    if (const auto found = given.find(module::parameter_name(v)); found != given.end())
      shapes.push_back({found->first, v.type(), found->second.type()});
  return bind_shapes(shapes);
}

}  // namespace

void decoder::encode(const id_rows& rows, const std::map<std::string, literal>& given) {
  const std::size_t length = longest(rows);
  const auto parameters = encoder_->portable().main().parameters();
  std::vector<std::int64_t> ids, mask;
  for (std::size_t r = 0; r < rows.size() && encodes_ids(); ++r) {
    if (rows[r].empty()) throw error(invalid_sequence, fmt::format("prompt {}: it is empty; give at least one id", r));
    const std::size_t missing = length - rows[r].size();
    if (missing > 0 && !takes_encoder_padding())
      throw error(
          error_kind::unsupported,
          "prompts of different lengths: encoder or decoder takes no mask of the encoder's ids; give prompts of "
          "one length, or one prompt at a time");
    ids.insert(ids.end(), rows[r].begin(), rows[r].end());
    ids.insert(ids.end(), missing, 0);
    mask.insert(mask.end(), rows[r].size(), 1);
    mask.insert(mask.end(), missing, 0);
  }
  const std::vector<dim> dims{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(length)};
  const dim_bindings sizes = sizes_of(parameters, given);
  std::vector<literal> inputs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = module::parameter_name(parameters[i]);
    const bool tokens = i == encoder_ports_.tokens;
    if (const auto found = given.find(name); found != given.end()) {
      inputs.push_back(found->second);
    } else if (encodes_ids() && (tokens || encoder_ports_.inputs[i] == input_role::mask)) {
      inputs.push_back(integers({parameters[i].type().type, dims}, tokens ? ids : mask));
    } else if (const shape all = parameters[i].type().substitute(sizes);
               encoder_ports_.inputs[i] == input_role::mask && all.is_static()) {
      inputs.push_back(literal::filled(all, 1));  // everything that was given counts
    } else {
      throw error(error_kind::usage,
                  fmt::format("input '{}': the encoder needs {}; give it with --encoder-input {}=FILE", name,
                              parameters[i].type().str(), name));
    }
  }
  const literal states = encoder_->run(inputs)[encoder_ports_.states];
  encoded_prompt fresh{states.type(), {}, mask};
  if (!encodes_ids())
    fresh.mask.assign(static_cast<std::size_t>(states.type().dims[0].value() * states.type().dims[1].value()), 1);
  device& on = encoder_->resources().device();
  const auto memory = fresh.states.at_least(on, states.bytes().size());
  on.upload(memory.data(), states.bytes().data(), memory.size());
  on.synchronize();
  reset();
  now_.encoded = std::move(fresh);
}

std::size_t decoder::copied_bytes() const { return last_->copied_bytes() + (first_ ? first_->copied_bytes() : 0); }

double decoder::planning_ms() const { return last_->planning_ms() + (first_ ? first_->planning_ms() : 0); }

std::size_t decoder::patches() const { return last_->patches() + (first_ ? first_->patches() : 0); }

}  // namespace kiln
