// Files in Redis under the hash of their bytes, in chunks, so that neither a value nor a message grows beyond what a
// server takes well. A blob is there when its head `kiln:blob:HASH` is, which is written after the chunks
// `kiln:blob:HASH:0` ...; all of them expire together when nobody has renewed them for `keep`. Callers say how many
// bytes a blob has: that alone decides how many chunks are asked for and how large each may be, whatever the server
// holds. Everything that is read is verified. Errors: those of redis_client; one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "ir/hash.hpp"

namespace kiln {

class redis_client;

class blob_store {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t{8} << 20;

  // Refers to `redis`.
  blob_store(redis_client& redis, std::chrono::seconds keep) : redis_(redis), keep_(std::to_string(keep.count())) {}

  // Stores what is not there yet and renews what is. Keys that hold something else are replaced.
  void put(const content_hash& hash, std::span<const std::byte> bytes);
  // Whether the blob is there in whole, by the sizes of its chunks; if so it is renewed.
  bool renew(const content_hash& hash, std::uint64_t bytes);
  // Writes the blob to a file, which appears only when its bytes are right. Throws error{missing_file} where the blob
  // is not there in whole, error{corrupted} where it is another one. It is removed only where all sizes are right and
  // the bytes are not: a wrong size may as well be the caller's, who has it from a job, and put() replaces such a blob.
  void fetch(const content_hash& hash, std::uint64_t bytes, const std::filesystem::path& file);
  void remove(const content_hash& hash, std::uint64_t bytes);

  static std::string head_key(const std::string& hash) { return "kiln:blob:" + hash; }

 private:
  enum class state { missing, whole, wrong };
  state state_of(const std::string& head, std::uint64_t bytes);
  bool write_chunks(const std::string& head, std::uint64_t bytes, const std::filesystem::path& file);
  redis_client& redis_;
  std::string keep_;
};

}  // namespace kiln
