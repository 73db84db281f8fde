// Stores files in Redis under the hash of their bytes. They are split into chunks, because a server handles very large
// values and messages badly. The head `kiln:blob:HASH` is written after the chunks `kiln:blob:HASH:0` ..., so a blob
// exists if its head does. Head and chunks expire together, `keep` after the last renewal. Callers pass the size of a
// blob; the number of chunks that are requested and their maximum size follow from it alone, whatever the server holds.
// Everything that is read is verified. Throws as redis_client does; used by one thread at a time.
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

  // `redis` must outlive this object.
  blob_store(redis_client& redis, std::chrono::seconds keep) : redis_(redis), keep_(std::to_string(keep.count())) {}

  // Stores the blob, or renews it if it is already there. Keys that hold something else are overwritten.
  void put(const content_hash& hash, std::span<const std::byte> bytes);
  // Renews the blob. Returns false if it is not complete, judged by the sizes of its chunks.
  bool renew(const content_hash& hash, std::uint64_t bytes);
  // Writes the blob to a file, which appears only after its bytes were verified. Throws error{missing_file} if the blob
  // is missing or incomplete, error{corrupted} if its size or bytes are wrong. A blob whose sizes are right but whose
  // bytes are wrong is removed from the server. A blob of another size is kept, because `bytes`, which comes from a
  // job, may be what is wrong; put() replaces such a blob.
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
