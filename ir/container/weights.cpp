#include "ir/container/weights.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "ir/container/flat.hpp"
#include "ir/container/format.hpp"
#include "ir/container/program_limits.hpp"
#include "ir/error.hpp"
#include "ir/ops/structure.hpp"
#include "ir/two_threads.hpp"

namespace kiln::container {
namespace {

[[noreturn]] void corrupted(const std::string& what) { throw error(error_kind::corrupted, what); }

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// The length of the shortest prefix whose repetition gives all bytes: one element if all are equal, otherwise
// everything.
std::size_t pattern_bytes(element_type type, std::span<const std::byte> bytes) {
  std::size_t width = std::max(1, storage_bits(type) / 8);
  bool same = bytes.size() > width && std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) == 0;
  return same ? width : bytes.size();
}

[[noreturn]] void mismatch(std::size_t tensor, const std::string& where = {}) {
  corrupted(where + "tensor " + std::to_string(tensor) + " of the weights does not match its hash");
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

std::vector<content_hash> hash_tensors(std::span<const std::span<const std::byte>> tensors) {
  struct piece {
    std::span<const std::byte> bytes;
    content_hash* result;
  };
  std::vector<content_hash> hashes(tensors.size());
  std::vector<std::vector<content_hash>> parts(tensors.size());
  std::vector<piece> pieces;
  std::uint64_t total = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    total += tensors[t].size();
    if (tensors[t].size() <= hash_piece) {
      pieces.push_back({tensors[t], &hashes[t]});
      continue;
    }
    parts[t].resize((tensors[t].size() + hash_piece - 1) / hash_piece);
    for (std::size_t i = 0; i < parts[t].size(); ++i)
      pieces.push_back(
          {tensors[t].subspan(i * hash_piece, std::min(hash_piece, tensors[t].size() - i * hash_piece)), &parts[t][i]});
  }
  on_two_threads(pieces.size(), total, [&](std::size_t i) { *pieces[i].result = blake3(pieces[i].bytes); });
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (!parts[t].empty()) hashes[t] = blake3(std::as_bytes(std::span(parts[t])));
  return hashes;
}

weight_collection::weight_collection(std::span<const program* const> programs) {
  struct candidate {
    std::span<const std::byte> all, stored;
  };
  std::vector<candidate> candidates;
  std::unordered_map<const std::byte*, std::vector<std::size_t>> sizes;
  for (const program* p : programs)
    for (const module& m : p->modules())
      for (const instruction& i : m.instructions()) {
        const auto* c = i.op().get_if<constant>();
        if (!c) continue;
        auto all = c->data.bytes();
        auto& known = sizes[all.data()];
        if (std::ranges::find(known, all.size()) != known.end()) continue;
        known.push_back(all.size());
        candidates.push_back({all, all.first(pattern_bytes(c->data.type().type, all))});
      }
  std::vector<std::span<const std::byte>> stored;
  for (const candidate& c : candidates) stored.push_back(c.stored);
  std::vector<content_hash> hashes = hash_tensors(stored);

  std::map<std::tuple<content_hash, std::uint64_t, std::uint64_t>, std::uint32_t> known;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto& [all, kept] = candidates[i];
    auto [found, fresh] =
        known.try_emplace({hashes[i], kept.size(), all.size()}, static_cast<std::uint32_t>(tensors_.size()));
    if (fresh) {
      std::uint64_t offset = round_up(section_bytes_, tensor_alignment);
      tensors_.push_back({offset, kept.size(), all.size(), hashes[i]});
      bytes_.push_back(kept);
      full_bytes_.push_back(all);
      section_bytes_ = offset + kept.size();
    }
    by_address_[all.data()].emplace_back(all.size(), found->second);
  }
}

std::uint32_t weight_collection::index_of(const literal& data) const {
  for (auto [size, tensor] : by_address_.at(data.address()))
    if (size == data.byte_count()) return tensor;
  throw error(error_kind::internal, "a constant was not collected");
}

std::vector<std::byte> encode_weights_index(const std::vector<stored_tensor>& tensors) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<schema::Weight> rows;
  for (const stored_tensor& t : tensors) rows.emplace_back(t.offset, t.stored_bytes, t.full_bytes, to_flat(t.hash));
  auto list = builder.CreateVectorOfStructs(rows);
  return finish(builder, schema::CreateWeightsIndex(builder, list), weights_index_identifier);
}

std::vector<stored_tensor> decode_weights_index(std::span<const std::byte> section, std::uint64_t section_bytes) {
  const auto* index = verified_root<schema::WeightsIndex>(section, weights_index_identifier, "weights index");
  std::vector<stored_tensor> tensors;
  std::uint64_t end = 0;
  if (aligned_count(index->weights()) > 0)
    for (const schema::Weight* row : *index->weights()) {
      stored_tensor t{row->offset(), row->stored(), row->full(), from_flat(row->hash())};
      bool placed = t.offset == round_up(end, tensor_alignment) && t.offset <= section_bytes &&
                    t.stored_bytes <= section_bytes - t.offset;
      bool sized =
          t.full_bytes <= max_tensor_bytes &&
          (t.stored_bytes == t.full_bytes || (t.stored_bytes <= 8 && t.stored_bytes > 0 &&
                                              t.stored_bytes < t.full_bytes && t.full_bytes % t.stored_bytes == 0));
      if (!placed || !sized)
        corrupted("tensor " + std::to_string(tensors.size()) + " of the weights index is out of place");
      end = t.offset + t.stored_bytes;
      tensors.push_back(t);
    }
  if (end != section_bytes) corrupted("the size of the weights differs from the weights index");
  return tensors;
}

void verify_weights(const std::vector<stored_tensor>& tensors, std::span<const std::byte> section,
                    std::uint64_t largest) {
  std::vector<std::span<const std::byte>> stored;
  std::vector<std::size_t> indices;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const stored_tensor& t = tensors[i];
    if (!all_zero(section.subspan(end, t.offset - end))) corrupted("there are bytes between the weights");
    end = t.offset + t.stored_bytes;
    if (t.stored_bytes > largest) continue;
    stored.push_back(section.subspan(t.offset, t.stored_bytes));
    indices.push_back(i);
  }
  std::vector<content_hash> hashes = hash_tensors(stored);
  for (std::size_t i = 0; i < hashes.size(); ++i)
    if (hashes[i] != tensors[indices[i]].hash) mismatch(indices[i]);
}

weight_source::weight_source(std::vector<stored_tensor> tensors, std::span<const std::byte> section,
                             std::shared_ptr<const void> owner, std::uint64_t verified, std::string file)
    : tensors_(std::move(tensors)),
      section_(section),
      owner_(std::move(owner)),
      verified_(verified),
      file_(std::move(file)) {}

std::uint64_t max_folded_bytes() {
  auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))),
       page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return pages * page / 2;
}

literal weight_source::get(std::uint32_t tensor, shape type) {
  if (tensor >= tensors_.size())
    corrupted("a constant names tensor " + std::to_string(tensor) + ", which does not exist");
  const stored_tensor& t = tensors_[tensor];
  if (checked_bytes(type) != t.full_bytes)
    corrupted("a constant " + type.str() + " names tensor " + std::to_string(tensor) + ", which has " +
              std::to_string(t.full_bytes) + " bytes");
  auto stored = section_.subspan(t.offset, t.stored_bytes);
  if (!t.folded()) {
    auto& check = checks_[tensor];
    if (!check && t.stored_bytes > verified_)
      check = std::make_shared<deferred_check>([stored, hash = t.hash, tensor, file = file_] {
        if (hash_tensors(std::span(&stored, 1))[0] != hash) mismatch(tensor, file + ": ");
      });
    return literal(std::move(type), stored, owner_).identified(t.hash, check);
  }
  auto& expanded = expanded_[tensor];
  if (!expanded) {
    expanded_bytes_ += t.full_bytes;
    if (expanded_bytes_ > max_folded_bytes())
      throw error(error_kind::unsupported, "its constant-filled tensors take more than " +
                                               std::to_string(max_folded_bytes() >> 20) +
                                               " MiB: use a machine with more memory");
    auto bytes = std::make_shared<std::vector<std::byte>>(t.full_bytes);
    std::memcpy(bytes->data(), stored.data(), stored.size());
    // Doubles the filled part with every copy.
    for (std::size_t filled = stored.size(); filled < bytes->size();) {
      std::size_t count = std::min(filled, bytes->size() - filled);
      std::memcpy(bytes->data() + filled, bytes->data(), count);
      filled += count;
    }
    expanded = std::move(bytes);
  }
  return literal(std::move(type), std::span(*expanded), expanded);
}

std::uint64_t checked_bytes(const shape& type) {
  std::uint64_t elements = 1;
  bool absurd = !type.is_static();
  if (!absurd) {
    bool empty = false;
    for (const dim& d : type.dims) {
      std::int64_t n = d.value();
      if (n == 0) empty = true;
      absurd = absurd || n < 0 ||
               (n > 0 && __builtin_mul_overflow(elements, static_cast<std::uint64_t>(n), &elements)) ||
               elements > max_tensor_bytes;
    }
    if (empty) elements = 0;
  }
  if (absurd) corrupted("impossible tensor " + type.str());
  return storage_bytes(type.type, elements);
}

}  // namespace kiln::container
