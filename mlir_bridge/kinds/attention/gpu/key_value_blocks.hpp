// Blocks of keys and values on their way from global memory through registers to shared memory, and from there to the
// matrix instructions: keys as they are, values transposed, so that both products read chunks of 8 along what they sum.
// f32 is stored as three parts of bf16 (gpu/split_f32.hpp). Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/split_f32.hpp"
#include "mlir_bridge/kinds/attention/gpu/attention.hpp"
#include "mlir_bridge/kinds/attention/gpu/lane_layout.hpp"

namespace kiln::gpu {

// `lanes` elements of a tensor: 16-bit elements as 32-bit words (8 are a chunk), f32 as a vector. They are zero where
// `inside` (may be null) does not hold.
Value chunk_of(kernel_emitter& e, const value& tensor, const position& where, Value inside,
               std::int64_t lanes = lane_layout::chunk);
// 8 results of chunk_of, rows and columns exchanged: a chunk for each of their lanes.
values transposed(code_builder& code, std::span<const Value> rows, element_type type,
                  std::int64_t lanes = lane_layout::chunk);
// How many chunks the matrix instructions need for 8 elements of the type, and those chunks.
constexpr std::int64_t parts_of(element_type type) { return type == element_type::f32 ? f32_parts : 1; }
values part_chunks(code_builder& code, Value chunk);

class key_value_blocks {
 public:
  // `key_block`: keys of a block. The lanes, the problem and the workgroup must outlive it.
  key_value_blocks(kernel_emitter& e, const attention_problem& problem, const lane_layout& lanes, workgroup& group,
                   std::int64_t key_block);

  static std::int64_t shared_bytes(const attention_problem& problem, const lane_layout& lanes, std::int64_t key_block);
  std::int64_t shared_bytes() const { return shared_bytes(p_, lanes_, key_block_); }
  // Registers of a thread that a block in flight takes (32-bit ones).
  std::int64_t fetched_registers() const;
  std::int64_t depth_chunks() const { return depth_chunks_; }  // of keys, whole groups
  std::int64_t value_depth() const { return value_depth_; }    // of values, whole groups

  void allocate();
  // Shared memory that is unused before the first block and after the last one.
  Value memory() const { return keys_; }
  // Begins the loads of the block at first_key (of the head and batch `at`); keys beyond the last one give that one,
  // values beyond it zero.
  void fetch(const attention_problem::place& at, Value first_key);
  // Stores the fetched block to shared memory. The caller must put barriers around the call.
  void store();

  // fetch() and store(); `apart`: first of all keys and then of all values, so that fewer registers are needed.
  void load(const attention_problem::place& at, Value first_key, bool apart);

  // Loads the block at first_key and stores it to `memory`, which need not be shared: its keys, then its values, as
  // they are in shared memory. Piece by piece, so that few registers are needed.
  void move(const attention_problem::place& at, Value first_key, Value memory);
  // Begins to copy the keys or the values that move() has stored at `block` to shared memory, past the registers
  // (cp.async). The caller must wait for the copies and put a barrier behind the wait.
  void copy_keys(Value block) { copy(block, keys_, parts_of(type_) * key_bytes()); }
  void copy_values(Value block);

  // Fragments of `map` out of shared memory: keys [first, first + one tile), depths of group g; depths [first, ...),
  // keys of group g. One fragment for each part.
  std::vector<fragment> keys(const factor_map& map, std::int64_t first, std::int64_t g) {
    return read(keys_, key_bytes(), map, first, key_pitch_, g);
  }
  std::vector<fragment> depths(const factor_map& map, std::int64_t first, std::int64_t g) {
    return read(values_, value_bytes(), map, first, key_block_ / lane_layout::chunk, g);
  }

 private:
  struct piece {
    Value number, used;  // used: whether this thread has a piece in this round; null: yes
  };
  std::int64_t key_pieces() const { return key_block_ * key_pitch_; }
  std::int64_t value_pieces() const { return key_block_ / lane_layout::chunk * value_depth_ / piece_depths_; }
  // Number of depths of a piece of values.
  std::int64_t choose_piece_depths() const;
  std::int64_t rounds(std::int64_t pieces) const {
    return (pieces + group_.threads() - 1) / group_.threads();
  }  // of all threads
  piece piece_of_round(std::int64_t round, std::int64_t pieces);
  void when_used(const piece& here, const std::function<void()>& body);
  // Bytes of one part of the keys and of the values.
  std::int64_t key_bytes() const { return key_pieces() * 16; }
  std::int64_t value_bytes() const { return value_depth_ * (key_block_ / lane_layout::chunk) * 16; }
  // Returns true if all blocks have all their keys. Only the block that is fetched ahead of the end has to be another
  // then, and keys need no limit.
  bool has_whole_blocks() const { return !p_.is_open() && p_.n.keys % key_block_ == 0; }
  // The key, or the last one.
  Value limited(Value key);
  // The first key of the block there, or of the last block.
  Value begin_of(Value first_key);
  void fetch_keys(const attention_problem::place& at, Value first_key);
  void fetch_all_values(const attention_problem::place& at, Value first_key);
  void store_keys();
  void store_all_values();
  Value fetch_key(const attention_problem::place& at, Value first_key, std::int64_t round);
  values fetch_values(const attention_problem::place& at, Value first_key, std::int64_t round);
  void store_key(std::int64_t round, Value fetched);
  void store_values(std::int64_t round, std::span<const Value> fetched);
  void copy(Value from, Value to, std::int64_t bytes);
  void store_parts(Value memory, std::int64_t part_bytes, Value place, Value chunk);
  std::vector<fragment> read(Value memory, std::int64_t part_bytes, const factor_map& map, std::int64_t first,
                             std::int64_t pitch, std::int64_t g);

  kernel_emitter& e_;
  code_builder& code_;
  const attention_problem& p_;
  const lane_layout& lanes_;
  workgroup& group_;
  element_type type_;
  std::int64_t key_block_, depth_chunks_, value_depth_, key_pitch_, piece_depths_;
  Value keys_, values_;
  values fetched_keys_, fetched_values_;
};

}  // namespace kiln::gpu
