#include "generation/sequence_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "ir/error.hpp"

namespace kiln {
namespace {

// Layout: magic, hash of everything behind it, hash of the model, then the fields of sequence_batch in the order of
// write_sequences(). Integers have 64 bits, little-endian. Lists are preceded by their length.
constexpr std::string_view magic = "KILNSEQ1";
constexpr std::size_t version_at = 7, hash_at = 8, model_at = hash_at + sizeof(content_hash), body_at = model_at + 32;
constexpr std::int64_t most_dims = 16;

class byte_writer {
 public:
  void integer(std::int64_t x) {
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(x) >> (8 * i)));
  }
  void integers(std::span<const std::int64_t> list) {
    integer(static_cast<std::int64_t>(list.size()));
    for (std::int64_t x : list) integer(x);
  }
  void raw(std::span<const std::byte> data) { bytes.insert(bytes.end(), data.begin(), data.end()); }
  void text(std::string_view t) {
    integer(static_cast<std::int64_t>(t.size()));
    raw(std::as_bytes(std::span(t)));
  }
  void type(const shape& t) {
    integer(static_cast<std::int64_t>(t.type));
    integers(t.static_dims());
  }
  std::vector<std::byte> bytes;
};

class byte_reader {
 public:
  explicit byte_reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::span<const std::byte> raw(std::size_t count) {
    if (count > rest_.size()) throw error(error_kind::corrupted, "saved sequences: a size in them is too large");
    const auto result = rest_.first(count);
    rest_ = rest_.subspan(count);
    return result;
  }
  std::int64_t integer() {
    std::uint64_t x = 0;
    const auto bytes = raw(8);
    for (std::size_t i = 0; i < 8; ++i) x |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    return static_cast<std::int64_t>(x);
  }
  std::size_t count(std::size_t element_bytes) {
    const std::int64_t n = integer();
    if (n < 0 || static_cast<std::uint64_t>(n) > rest_.size() / element_bytes) raw(rest_.size() + 1);
    return static_cast<std::size_t>(n);
  }
  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> list(count(8));
    for (std::int64_t& x : list) x = integer();
    return list;
  }
  std::string text() {
    const auto bytes = raw(count(1));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  shape type() {
    const std::int64_t number = integer();
    const std::vector<std::int64_t> dims = integers();
    const auto most = static_cast<std::int64_t>(element_type_count);
    const bool wrong = number < 0 || number >= most || std::ssize(dims) > most_dims ||
                       std::ranges::any_of(dims, [](std::int64_t d) { return d < 0; });
    if (wrong) throw error(error_kind::corrupted, "saved sequences: a tensor in them has no valid type");
    return {static_cast<element_type>(number), {dims.begin(), dims.end()}};
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

// The used rows of a cache, one behind the other.
void write_tensor(byte_writer& to, device& on, const shape& type, const growing_memory& memory,
                  const std::optional<state_tensor::room>& rows) {
  shape used = type;
  if (rows) used.dims[rows->axis] = rows->used;
  to.type(used);
  to.integer(rows ? static_cast<std::int64_t>(rows->axis) : -1);
  const std::size_t bytes = used.bytes(), begin = to.bytes.size();
  to.bytes.resize(begin + bytes);
  if (bytes == 0) return;
  std::size_t parts = 1;
  for (std::size_t i = 0; rows && i < rows->axis; ++i) parts *= static_cast<std::size_t>(used.dims[i].value());
  const std::size_t part = bytes / parts, stride = type.bytes() / parts;
  for (std::size_t p = 0; p < parts; ++p)
    on.download(to.bytes.data() + begin + p * part, memory.data() + p * stride, part);
}

growing_memory read_memory(byte_reader& from, device& on, const shape& type) {
  const auto bytes = from.raw(type.bytes());
  growing_memory memory;
  const auto to = memory.at_least(on, bytes.size());
  if (!bytes.empty()) on.upload(to.data(), bytes.data(), bytes.size());
  return memory;
}

state_tensor read_tensor(byte_reader& from, device& on) {
  state_tensor tensor;
  tensor.type = from.type();
  const std::int64_t axis = from.integer();
  if (axis >= static_cast<std::int64_t>(tensor.type.rank()))
    throw error(error_kind::corrupted, "saved sequences: a cache in them has no such axis");
  tensor.now = read_memory(from, on, tensor.type);
  // The next step gives the cache more room.
  if (axis >= 0)
    tensor.rows = {static_cast<std::size_t>(axis), tensor.type.dims[static_cast<std::size_t>(axis)].value()};
  return tensor;
}

}  // namespace

std::vector<std::byte> write_sequences(device& on, const sequence_batch& batch, const content_hash& model) {
  byte_writer to;
  to.raw(std::as_bytes(std::span(magic)));
  to.bytes.resize(model_at);
  to.raw(std::as_bytes(std::span(model.bytes)));
  to.integer(batch.past);
  to.integer(static_cast<std::int64_t>(batch.history.size()));
  for (std::size_t r = 0; r < batch.history.size(); ++r) to.integers(batch.history[r]), to.integers(batch.masks[r]);
  to.integer(batch.encoded ? 1 : 0);
  if (batch.encoded) {
    to.integers(batch.encoded->mask);
    write_tensor(to, on, batch.encoded->type, batch.encoded->states, std::nullopt);
  }
  to.integer(static_cast<std::int64_t>(batch.state.tensors.size()));
  for (const auto& [key, tensor] : batch.state.tensors) {
    to.text(key);
    write_tensor(to, on, tensor.type, tensor.now, tensor.rows);
  }
  on.synchronize();
  const content_hash hash = blake3(std::span(to.bytes).subspan(model_at));
  std::memcpy(to.bytes.data() + hash_at, hash.bytes.data(), hash.bytes.size());
  return std::move(to.bytes);
}

sequence_batch read_sequences(device& on, std::span<const std::byte> bytes, const content_hash& model) {
  const auto begins_with = [&](std::string_view text) {
    return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
  };
  if (!begins_with(magic)) {
    if (bytes.size() > version_at && begins_with(magic.substr(0, version_at)))
      throw error(error_kind::newer_version, "saved sequences: another version of Kiln wrote them; use that one");
    throw error(error_kind::corrupted, "saved sequences: they do not begin as such; give what was saved");
  }
  if (bytes.size() < body_at) throw error(error_kind::truncated, "saved sequences: they end early; save them again");
  content_hash hash, of;
  std::memcpy(hash.bytes.data(), bytes.data() + hash_at, hash.bytes.size());
  std::memcpy(of.bytes.data(), bytes.data() + model_at, of.bytes.size());
  if (blake3(bytes.subspan(model_at)) != hash)
    throw error(error_kind::corrupted, "saved sequences: they do not match their hash; save them again");
  if (of != model)
    throw error(error_kind::mismatch,
                "saved sequences: another model, or another form of this one, has read them; open that one");
  byte_reader from(bytes.subspan(body_at));
  sequence_batch batch;
  batch.past = from.integer();
  const std::size_t rows = from.count(16);
  for (std::size_t r = 0; r < rows; ++r)
    batch.history.push_back(from.integers()), batch.masks.push_back(from.integers());
  if (from.integer() != 0) {
    encoded_prompt encoded;
    encoded.mask = from.integers();
    state_tensor states = read_tensor(from, on);
    encoded.type = states.type, encoded.states = std::move(states.now);
    batch.encoded = std::move(encoded);
  }
  const std::size_t tensors = from.count(8);
  for (std::size_t t = 0; t < tensors; ++t) {
    std::string key = from.text();
    batch.state.tensors.insert_or_assign(std::move(key), read_tensor(from, on));
  }
  if (!from.at_end()) throw error(error_kind::corrupted, "saved sequences: there is something behind their end");
  on.synchronize();
  return batch;
}

}  // namespace kiln
