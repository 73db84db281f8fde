// The tensors of a file: which of a program's constants are stored, where, and their way back.
// Equal bytes are stored once, whatever their shape; a constant-filled tensor as one element.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/literal.hpp"
#include "ir/program.hpp"

namespace kiln::container {

// BLAKE3 of the bytes, up to 4 MiB; above, BLAKE3 of the hashes of each 4 MiB. So that one big tensor can be hashed by
// several threads.
inline constexpr std::size_t hash_piece = std::size_t{4} << 20;

// The hashes of many tensors, on at most two threads when there is much to do.
std::vector<content_hash> hash_tensors(std::span<const std::span<const std::byte>> tensors);

struct stored_tensor {
  std::uint64_t offset = 0, stored_bytes = 0, full_bytes = 0;  // offset: in section weights
  content_hash hash;                                           // of the stored bytes
  bool folded() const { return stored_bytes < full_bytes; }
};

// What of a program goes into the weights sections, in the order of first use.
class weight_collection {
 public:
  explicit weight_collection(const program& p);
  std::uint32_t index_of(const literal& data) const;
  const std::vector<stored_tensor>& tensors() const { return tensors_; }
  std::span<const std::byte> bytes(std::size_t tensor) const { return bytes_[tensor]; }            // as stored
  std::span<const std::byte> full_bytes(std::size_t tensor) const { return full_bytes_[tensor]; }  // of the program
  std::uint64_t section_bytes() const { return section_bytes_; }

 private:
  std::unordered_map<const std::byte*, std::vector<std::pair<std::size_t, std::uint32_t>>>
      by_address_;  // (size, tensor)
  std::vector<stored_tensor> tensors_;
  std::vector<std::span<const std::byte>> bytes_, full_bytes_;
  std::uint64_t section_bytes_ = 0;
};

std::vector<std::byte> encode_weights_index(const std::vector<stored_tensor>& tensors);
// Verifies that tensors are aligned, in order, disjoint and within a section of `section_bytes`.
std::vector<stored_tensor> decode_weights_index(std::span<const std::byte> section, std::uint64_t section_bytes);

// Every tensor against its hash, and zeros between them. Throws error{corrupted}.
void verify_weights(const std::vector<stored_tensor>& tensors, std::span<const std::byte> section);

// More constant-filled tensors than this, expanded, are refused as unsupported: half of the machine's memory.
std::uint64_t max_folded_bytes();

// Makes literals out of verified tensors; folded ones are expanded once, and share their bytes.
class weight_source {
 public:
  weight_source(std::vector<stored_tensor> tensors, std::span<const std::byte> section,
                std::shared_ptr<const void> owner);
  // Throws error{corrupted} where there is no such tensor or it does not have the bytes that the type needs.
  literal get(std::uint32_t tensor, shape type);

 private:
  std::vector<stored_tensor> tensors_;
  std::span<const std::byte> section_;
  std::shared_ptr<const void> owner_;
  std::unordered_map<std::uint32_t, std::shared_ptr<const std::vector<std::byte>>> expanded_;
  std::uint64_t expanded_bytes_ = 0;
};

// Dense bytes of a static type, with every overflow checked; throws error{corrupted} for symbolic, negative and absurd
// dims.
std::uint64_t checked_bytes(const shape& type);

}  // namespace kiln::container
