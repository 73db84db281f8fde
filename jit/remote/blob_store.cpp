#include "jit/remote/blob_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/container/files.hpp"
#include "ir/error.hpp"
#include "jit/remote/redis_client.hpp"

namespace kiln {
namespace {

std::string chunk_key(const std::string& head, std::uint64_t i) { return fmt::format("{}:{}", head, i); }

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// An empty blob also has one chunk.
std::uint64_t chunk_count(std::uint64_t bytes) {
  return std::max<std::uint64_t>(1, bytes / blob_store::chunk_bytes + (bytes % blob_store::chunk_bytes != 0));
}

std::uint64_t bytes_of_chunk(std::uint64_t bytes, std::uint64_t i) {
  return std::min<std::uint64_t>(blob_store::chunk_bytes, bytes - i * blob_store::chunk_bytes);
}

constexpr std::size_t commands_at_once = 256;

// Calls `act` with the keys of a blob's head and chunks, `commands_at_once` keys at a time, until it returns false.
template <class Act>
void for_all_keys(const std::string& head, std::uint64_t chunks, Act act) {
  std::vector<std::string> keys{head};
  for (std::uint64_t i = 0; i < chunks; ++i) {
    keys.push_back(chunk_key(head, i));
    if (keys.size() < commands_at_once) continue;
    if (!act(keys)) return;
    keys.clear();
  }
  if (!keys.empty()) act(keys);
}

}  // namespace

blob_store::state blob_store::state_of(const std::string& head, std::uint64_t bytes) {
  redis_value answer = redis_.ask({"GET", head});
  if (answer.is_null()) return state::missing;
  return answer.kind == redis_value::type::text && answer.text == std::to_string(chunk_count(bytes)) ? state::whole
                                                                                                     : state::wrong;
}

bool blob_store::renew(const content_hash& hash, std::uint64_t bytes) {
  const std::string head = head_key(hash.hex());
  if (state_of(head, bytes) != state::whole) return false;
  bool whole = true;
  for_all_keys(head, chunk_count(bytes), [&](const std::vector<std::string>& keys) {
    std::vector<redis_client::command> commands;
    for (const std::string& key : keys) commands.push_back({"EXPIRE", key, keep_});
    whole =
        std::ranges::all_of(redis_.call_all(commands), [](const redis_value& answer) { return answer.number == 1; });
    return whole;
  });
  if (!whole) return false;
  std::uint64_t chunk = 0;
  for_all_keys(head, chunk_count(bytes), [&](const std::vector<std::string>& keys) {
    std::vector<redis_client::command> commands;
    for (const std::string& key : keys)
      if (key != head) commands.push_back({"STRLEN", key});
    for (const redis_value& size : redis_.ask_all(commands))  // the answer is an error if the key has another type
      whole &= size.kind == redis_value::type::number &&
               static_cast<std::uint64_t>(size.number) == bytes_of_chunk(bytes, chunk++);
    return whole;
  });
  return whole;
}

void blob_store::put(const content_hash& hash, std::span<const std::byte> bytes) {
  try {
    if (renew(hash, bytes.size())) return;
  } catch (const oversized_reply&) {
    // The head holds something else. It is overwritten below.
  }
  const std::string head = head_key(hash.hex());
  const std::uint64_t chunks = chunk_count(bytes.size());
  for (std::uint64_t i = 0; i < chunks; ++i) {
    const std::string key = chunk_key(head, i);
    redis_.call({"SET", key, text_of(bytes.subspan(i * chunk_bytes, bytes_of_chunk(bytes.size(), i))), "EX", keep_});
  }
  const std::string count = std::to_string(chunks);
  redis_.call({"SET", head, count, "EX", keep_});
}

// Writes the chunks to `file`. Returns false if a chunk has the wrong size or type.
bool blob_store::write_chunks(const std::string& head, std::uint64_t bytes, const std::filesystem::path& file) {
  container::output_file out(file);
  for (std::uint64_t i = 0; i < chunk_count(bytes); ++i) {
    const std::string key = chunk_key(head, i);
    const std::uint64_t expected = bytes_of_chunk(bytes, i);
    redis_value chunk = redis_.ask({"GET", key}, {.bytes = expected + reply_bounds().bytes, .elements = 0});
    if (chunk.is_null()) throw error(error_kind::missing_file, "");
    if (chunk.kind != redis_value::type::text || chunk.text.size() != expected) return false;
    out.write(std::as_bytes(std::span(chunk.text)));
  }
  out.commit();
  return true;
}

void blob_store::fetch(const content_hash& hash, std::uint64_t bytes, const std::filesystem::path& file) {
  const std::string head = head_key(hash.hex());
  auto unverified = file;
  unverified += ".unverified";
  bool sized = false, right = false;
  std::error_code failed;
  try {
    const state found = state_of(head, bytes);
    if (found == state::missing) throw error(error_kind::missing_file, "");
    sized = found == state::whole && write_chunks(head, bytes, unverified);
    right = sized && blake3(container::mapped_file::open(unverified)->bytes()) == hash;
  } catch (const oversized_reply&) {
    // A value is larger than a blob of this size can have, so this is not our blob.
  } catch (const error& e) {
    if (e.kind() != error_kind::missing_file) throw;
    throw error(error_kind::missing_file, fmt::format("the blob {} has expired or was removed", hash.hex()));
  }
  if (right) {
    std::filesystem::rename(unverified, file, failed);
    if (failed) throw error(error_kind::io, fmt::format("{}: cannot be written: {}", file.string(), failed.message()));
    return;
  }
  std::filesystem::remove(unverified, failed);
  if (sized) remove(hash, bytes);
  throw error(error_kind::corrupted, fmt::format("the bytes of blob {} do not match its hash", hash.hex()));
}

void blob_store::remove(const content_hash& hash, std::uint64_t bytes) {
  for_all_keys(head_key(hash.hex()), chunk_count(bytes), [&](const std::vector<std::string>& keys) {
    redis_client::command words{"DEL"};
    words.insert(words.end(), keys.begin(), keys.end());
    redis_.call(words);
    return true;
  });
}

}  // namespace kiln
