// Files in Redis under the hash of their bytes, in chunks, so that neither a value nor a message grows beyond what a server takes well. A blob is there when its
// head `kiln:blob:HASH` is, which is written after the chunks `kiln:blob:HASH:0` ...; all of them expire together when nobody has renewed them for `keep`.
// Everything that is read is verified. Errors: those of redis_client; one thread at a time.
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

  // Stores what is not there yet and renews what is.
  void put(const content_hash& hash, std::span<const std::byte> bytes);
  // Whether the blob is there in whole; if so it is renewed.
  bool renew(const content_hash& hash);
  // Writes the blob of so many bytes to a file, which appears only when they are right. Throws error{missing_file} where the blob is not there in whole,
  // error{corrupted} where its bytes are others; then it is removed.
  void fetch(const content_hash& hash, std::uint64_t bytes, const std::filesystem::path& file);
  void remove(const content_hash& hash);

  static std::string head_key(const std::string& hash) { return "kiln:blob:" + hash; }

 private:
  std::uint64_t chunks_of(const std::string& head);
  redis_client& redis_;
  std::string keep_;
};

}  // namespace kiln
