// Stores the constants of a program as tensors of a file and reads them back. Constants with equal bytes are stored
// once, whatever their shape; a constant-filled tensor is stored as one element.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/literal.hpp"
#include "ir/program.hpp"

namespace kiln::container {

// Up to 4 MiB, the hash of a tensor is the BLAKE3 of its bytes. Above that it is the BLAKE3 of the hashes of its 4 MiB
// pieces, so that several threads can hash one large tensor.
inline constexpr std::size_t hash_piece = std::size_t{4} << 20;

// Hashes many tensors. Uses at most two threads, and only if there is enough data.
std::vector<content_hash> hash_tensors(std::span<const std::span<const std::byte>> tensors);

struct stored_tensor {
  std::uint64_t offset = 0, stored_bytes = 0, full_bytes = 0;  // offset: within section `weights`
  content_hash hash;                                           // of the stored bytes
  bool folded() const { return stored_bytes < full_bytes; }
};

// Collects the tensors of programs for the weights sections, in order of first use.
class weight_collection {
 public:
  explicit weight_collection(std::span<const program* const> programs);
  std::uint32_t index_of(const literal& data) const;
  const std::vector<stored_tensor>& tensors() const { return tensors_; }
  std::span<const std::byte> bytes(std::size_t tensor) const { return bytes_[tensor]; }  // as stored
  // The tensor's bytes in the program, before folding.
  std::span<const std::byte> full_bytes(std::size_t tensor) const { return full_bytes_[tensor]; }
  std::uint64_t section_bytes() const { return section_bytes_; }

 private:
  // Keyed by address; the pairs are (size, tensor).
  std::unordered_map<const std::byte*, std::vector<std::pair<std::size_t, std::uint32_t>>> by_address_;
  std::vector<stored_tensor> tensors_;
  std::vector<std::span<const std::byte>> bytes_, full_bytes_;
  std::uint64_t section_bytes_ = 0;
};

std::vector<std::byte> encode_weights_index(const std::vector<stored_tensor>& tensors);
// Verifies that the tensors are aligned, in order, disjoint, and inside a section of `section_bytes`.
std::vector<stored_tensor> decode_weights_index(std::span<const std::byte> section, std::uint64_t section_bytes);

// Verifies the hash of every tensor of at most `largest` bytes and that the padding between all tensors is zero. Throws
// error{corrupted}.
void verify_weights(const std::vector<stored_tensor>& tensors, std::span<const std::byte> section,
                    std::uint64_t largest = std::numeric_limits<std::uint64_t>::max());

// Tensors up to this size are verified when a file is read. Hashing all of them takes a few milliseconds; the larger
// ones of a file are often not read at all, because the cache has packed copies.
inline constexpr std::uint64_t verified_at_once = std::uint64_t{1} << 18;

// Upper bound on the expanded size of all constant-filled tensors of a file: half of the machine's memory. A file that
// needs more is refused with error{unsupported}.
std::uint64_t max_folded_bytes();

// Makes literals out of tensors. A folded tensor is expanded once and its bytes are shared.
class weight_source {
 public:
  // Tensors of at most `verified` bytes have been verified. Larger ones are when their literals are first read; an
  // error then names `file`.
  weight_source(std::vector<stored_tensor> tensors, std::span<const std::byte> section,
                std::shared_ptr<const void> owner, std::uint64_t verified, std::string file);
  // Throws error{corrupted} if there is no such tensor or if its size does not match the type.
  literal get(std::uint32_t tensor, shape type);

 private:
  std::vector<stored_tensor> tensors_;
  std::span<const std::byte> section_;
  std::shared_ptr<const void> owner_;
  std::uint64_t verified_;
  std::string file_;
  std::unordered_map<std::uint32_t, std::shared_ptr<deferred_check>> checks_;
  std::unordered_map<std::uint32_t, std::shared_ptr<const std::vector<std::byte>>> expanded_;
  std::uint64_t expanded_bytes_ = 0;
};

// Size of a dense tensor of a static type, in bytes. Throws error{corrupted} for symbolic or negative dims and on
// overflow.
std::uint64_t checked_bytes(const shape& type);

}  // namespace kiln::container
