// The functions of a decoder that exchange, copy, save, load and shorten its sequences.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "generation/decoder.hpp"
#include "generation/sequence_file.hpp"
#include "ir/error.hpp"
#include "ir/ops/structure.hpp"

namespace kiln {
namespace {

// Returns true if a state with this many rows can belong to sequences of this length.
bool can_be_shortened(const decoder_ports& ports) {
  return std::ranges::none_of(ports.states, [](const state_port& s) { return s.input && s.output && !s.written_once; });
}

// Hashes only the beginning of each constant. Constants are large and may lie in a file that has not been read yet.
void add_constants(field_hasher& hasher, const program& p) {
  constexpr std::size_t most = 4096;
  for (const instruction& i : p.main().instructions())
    if (const auto* c = i.op().get_if<constant>())
      hasher.add(c->data.type().str()).add(c->data.bytes().first(std::min(most, c->data.bytes().size())));
}

void add_program(field_hasher& hasher, const program& p) {
  for (value v : p.main().parameters()) hasher.add(module::parameter_name(v)).add(v.type().str());
  for (std::size_t i = 0; i < p.main().outputs().size(); ++i)
    hasher.add(p.main().output_names()[i]).add(p.main().outputs()[i].type().str());
  for (const auto& [hash, payload] : p.kernels()) hasher.add(hash);
  add_constants(hasher, p);
}

std::size_t shorter(const std::vector<std::int64_t>& row, std::int64_t length) {
  return std::min(row.size(), static_cast<std::size_t>(length));
}

}  // namespace

std::vector<std::int64_t> decoder::lengths() const {
  std::vector<std::int64_t> result;
  for (const auto& mask : now_.masks)
    result.push_back(std::accumulate(mask.begin(), mask.begin() + static_cast<std::ptrdiff_t>(shorter(mask, now_.past)),
                                     std::int64_t{0}));
  return result;
}

std::vector<std::int64_t> decoder::ids_of(std::size_t row) const {
  std::vector<std::int64_t> result;
  const auto &ids = now_.history.at(row), &mask = now_.masks.at(row);
  for (std::size_t i = 0; i < std::min(ids.size(), mask.size()); ++i)
    if (mask[i]) result.push_back(ids[i]);
  return result;
}

void decoder::rollback(std::int64_t count) {
  finish();
  if (count < 0 || count > now_.past)
    throw error(error_kind::usage, fmt::format("rollback: {} ids of sequences that have {}; give a number from 0 to {}",
                                               count, now_.past, now_.past));
  if (count == 0) return;
  const std::int64_t length = now_.past - count;
  id_rows history = now_.history, masks = now_.masks;
  for (auto& row : history) row.resize(shorter(row, length));
  for (auto& row : masks) row.resize(shorter(row, length));
  if (length > 0 && !can_be_shortened(last_->ports())) return run_again(std::move(history), std::move(masks));
  now_.history = std::move(history), now_.masks = std::move(masks), now_.past = length;
  if (length == 0) now_.state = {};
  // Cache rows beyond this length are not cleared. The next step overwrites them.
  for (auto& [key, tensor] : now_.state.tensors)
    if (tensor.rows) tensor.rows->used = length;
}

void decoder::run_again(id_rows history, id_rows masks) {
  if (history[0].size() != masks[0].size())
    throw error(error_kind::unsupported, "rollback: the ids that the device chose are not kept; reset, and give them");
  std::optional<encoded_prompt> encoded = std::exchange(now_.encoded, std::nullopt);
  sequence_batch before = std::exchange(now_, {});
  now_.encoded = std::move(encoded);
  now_.masks = std::move(masks), now_.history.resize(history.size());
  try {
    run_rows(history);
  } catch (...) {
    before.encoded = std::move(now_.encoded);
    now_ = std::move(before);
    throw;
  }
}

void decoder::reset() {
  finish();
  now_ = {};
}

sequence_batch decoder::exchange(sequence_batch other) {
  finish();
  return std::exchange(now_, std::move(other));
}

sequence_batch decoder::copy() {
  finish();
  return copy_of(last_->on(), now_);
}

content_hash decoder::identity() const {
  field_hasher hasher;
  add_program(hasher, last_->model());
  if (first_) add_program(hasher, first_->model());
  if (encoder_) add_program(hasher, encoder_->portable());
  return hasher.finish();
}

std::vector<std::byte> decoder::save() {
  finish();
  return write_sequences(last_->on(), now_, identity());
}

// An intact hash does not prove that Kiln wrote the bytes, so their contents are checked as well.
void decoder::check_loaded(const sequence_batch& loaded) const {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw error(error_kind::corrupted, fmt::format("saved sequences: {}; save them again", what));
  };
  const auto is_known = [&](std::int64_t id) { return id >= 0 && id < last_->known_ids(); };
  for (std::size_t r = 0; r < loaded.history.size(); ++r) {
    const auto &ids = loaded.history[r], &mask = loaded.masks[r];
    require(std::ranges::all_of(ids, is_known), "an id is not in the vocabulary");
    require(std::ssize(ids) <= loaded.past && std::ssize(mask) == loaded.past, "the lengths contradict each other");
    require(std::ranges::all_of(mask, [](std::int64_t m) { return m == 0 || m == 1; }), "a mask has no 0 or 1");
  }
  require(loaded.past >= 0 && (loaded.past == 0 || !loaded.history.empty()), "the length is wrong");
  require(!context_ || loaded.past <= *context_, "they are longer than the context");
  require(!loaded.encoded || encoder_, "the model has no encoder");
  if (loaded.encoded) {
    const shape& type = loaded.encoded->type;
    std::int64_t rows = 0;
    require(type.rank() == 3 && !__builtin_mul_overflow(type.dims[0].value(), type.dims[1].value(), &rows) &&
                std::ssize(loaded.encoded->mask) == rows,
            "what was encoded has another shape");
  }
  if (loaded.past > 0) last_->check_state(loaded.state, std::ssize(loaded.history), loaded.past);
  else require(loaded.state.tensors.empty(), "there are states of an empty sequence");
}

void decoder::load(std::span<const std::byte> saved) {
  finish();
  sequence_batch loaded = read_sequences(last_->on(), saved, identity());
  check_loaded(loaded);
  now_ = std::move(loaded);
}

}  // namespace kiln
