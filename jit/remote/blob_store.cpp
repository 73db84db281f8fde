#include "jit/remote/blob_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/container/files.hpp"
#include "ir/error.hpp"
#include "jit/remote/redis_client.hpp"

namespace kiln {
namespace {

std::string chunk_key(const std::string& head, std::uint64_t i) { return fmt::format("{}:{}", head, i); }

std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

// How many chunks the blob has, 0 where there is none.
std::uint64_t blob_store::chunks_of(const std::string& head) { return static_cast<std::uint64_t>(redis_.call({"GET", head}).as_number()); }

bool blob_store::renew(const content_hash& hash) {
  const std::string head = head_key(hash.hex());
  const std::uint64_t chunks = chunks_of(head);
  if (chunks == 0) return false;
  std::vector<std::string> keys{head};
  for (std::uint64_t i = 0; i < chunks; ++i) keys.push_back(chunk_key(head, i));
  std::vector<redis_client::command> commands;
  for (const std::string& key : keys) commands.push_back({"EXPIRE", key, keep_});
  return std::ranges::all_of(redis_.call_all(commands), [](const redis_value& answer) { return answer.number == 1; });
}

void blob_store::put(const content_hash& hash, std::span<const std::byte> bytes) {
  if (renew(hash)) return;
  const std::string head = head_key(hash.hex());
  std::uint64_t chunks = 0;
  for (auto rest = bytes; chunks == 0 || !rest.empty(); ++chunks) {
    auto chunk = rest.first(std::min(rest.size(), chunk_bytes));
    const std::string key = chunk_key(head, chunks);
    redis_.call({"SET", key, text_of(chunk), "EX", keep_});
    rest = rest.subspan(chunk.size());
  }
  const std::string count = std::to_string(chunks);
  redis_.call({"SET", head, count, "EX", keep_});
}

void blob_store::fetch(const content_hash& hash, std::uint64_t bytes, const std::filesystem::path& file) {
  const std::string head = head_key(hash.hex());
  auto lacks = [&] { return error(error_kind::missing_file, fmt::format("the blob {} has expired or was removed", hash.hex())); };
  const std::uint64_t chunks = chunks_of(head);
  if (chunks == 0) throw lacks();
  auto unverified = file;
  unverified += ".unverified";
  bool right;
  {
    container::output_file out(unverified);
    for (std::uint64_t i = 0; i < chunks && out.size() <= bytes; ++i) {
      const std::string key = chunk_key(head, i);
      redis_value chunk = redis_.call({"GET", key});
      if (chunk.is_null()) throw lacks();
      out.write(std::as_bytes(std::span(chunk.text)));
    }
    right = out.size() == bytes;
    out.commit();
  }
  std::error_code failed;
  if (right && blake3(container::mapped_file::open(unverified)->bytes()) == hash) {
    std::filesystem::rename(unverified, file, failed);
    if (failed) throw error(error_kind::io, fmt::format("{}: cannot be written: {}", file.string(), failed.message()));
    return;
  }
  std::filesystem::remove(unverified, failed);
  remove(hash);
  throw error(error_kind::corrupted, fmt::format("the bytes of blob {} are not those of its hash", hash.hex()));
}

void blob_store::remove(const content_hash& hash) {
  const std::string head = head_key(hash.hex());
  const std::uint64_t chunks = chunks_of(head);
  redis_.call({"DEL", head});
  for (std::uint64_t i = 0; i < chunks; ++i) {
    const std::string key = chunk_key(head, i);
    redis_.call({"DEL", key});
  }
}

}  // namespace kiln
