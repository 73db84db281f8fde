#include "mlir_bridge/kinds/attention/gpu/key_value_blocks.hpp"

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t chunk = lane_layout::chunk;

// Returns the number of chunks per row in shared memory, rounded so that the swizzle stays within the row.
std::int64_t row_chunks(std::int64_t chunks) {
  std::int64_t n = 1;
  while (n < chunks && n < 8) n *= 2;
  return chunks <= 8 ? n : ceil_div(chunks, 8) * 8;
}

std::int64_t whole_groups(std::int64_t depth, const lane_layout& lanes) {
  return ceil_div(depth, lanes.group_keys) * lanes.group_keys;
}

}  // namespace

key_value_blocks::key_value_blocks(kernel_emitter& e, const attention_problem& problem, const lane_layout& lanes,
                                   workgroup& group, std::int64_t key_block)
    : e_(e),
      code_(e.code),
      p_(problem),
      lanes_(lanes),
      group_(group),
      type_(problem.query.type().type),
      key_block_(key_block),
      depth_chunks_(whole_groups(problem.n.depth, lanes) / chunk),
      value_depth_(whole_groups(problem.n.value_depth, lanes)),
      key_pitch_(row_chunks(depth_chunks_)),
      piece_depths_(choose_piece_depths()) {}

// On AMD GPUs every thread should have a piece. Loads that only some threads use would be moved behind the barrier in
// front of their use, where nothing hides their latency, and a single wave would transpose all values.
std::int64_t key_value_blocks::choose_piece_depths() const {
  std::int64_t depths = chunk;
  if (e_.target.family != target_family::amdgpu || type_ == element_type::f32) return depths;
  const std::int64_t least = 32 / storage_bits(type_);
  while (depths > least && key_block_ / chunk * (value_depth_ / depths) * 2 <= group_.threads()) depths /= 2;
  return depths;
}

std::int64_t key_value_blocks::shared_bytes(const attention_problem& problem, const lane_layout& lanes,
                                            std::int64_t key_block) {
  return parts_of(problem.query.type().type) *
         (key_block * row_chunks(whole_groups(problem.n.depth, lanes) / chunk) * chunk_bytes +
          whole_groups(problem.n.value_depth, lanes) * (key_block / chunk) * chunk_bytes);
}

std::int64_t key_value_blocks::fetched_registers() const {
  const std::int64_t of_chunk = type_ == element_type::f32 ? chunk : 4;
  return rounds(key_pieces()) * of_chunk + rounds(value_pieces()) * piece_depths_ * of_chunk;
}

void key_value_blocks::allocate() {
  keys_ = group_.lds(parts_of(type_) * key_bytes(), 128);
  values_ = group_.lds(parts_of(type_) * value_bytes(), 128);
}

Value chunk_of(kernel_emitter& e, const value& tensor, const position& where, Value inside, std::int64_t lanes) {
  evaluator ev(e);
  Value elements = ev.at(tensor, where, lanes);
  if (tensor.type().type == element_type::f32)
    return inside ? e.code.select(inside, elements, e.code.number(elements.getType(), 0)) : elements;
  const mlir::Type words =
      code_builder::with_lanes(e.code.builder.getI32Type(), lanes * storage_bits(tensor.type().type) / 32);
  Value stored = reinterpret(e.code, e.code.to_storage(elements, tensor.type().type), words);
  return inside ? e.code.select(inside, stored, e.code.integer(words, 0)) : stored;
}

values transposed(code_builder& code, std::span<const Value> rows, element_type type, std::int64_t lanes) {
  mlir::Type elements_type = code_builder::with_lanes(code.storage_type(type), lanes);
  values typed, result;
  for (Value v : rows) typed.push_back(reinterpret(code, v, elements_type));
  for (std::int64_t column = 0; column < lanes; ++column) {
    values elements;
    for (Value row : typed) elements.push_back(code.lane(row, column));
    Value v = code.from_lanes(elements);
    result.push_back(type == element_type::f32 ? v : reinterpret(code, v, chunk_type(code)));
  }
  return result;
}

values part_chunks(code_builder& code, Value chunk) {
  if (!code_builder::scalar_of(chunk).isF32()) return {chunk};
  values result;
  for (Value part : split_f32(code, chunk)) result.push_back(reinterpret(code, part, chunk_type(code)));
  return result;
}

void key_value_blocks::store_parts(Value memory, std::int64_t part_bytes, Value place, Value chunk) {
  Value address = byte_address(code_, memory, code_.mul(place, chunk_bytes));
  const values parts = part_chunks(code_, chunk);
  for (std::size_t i = 0; i < parts.size(); ++i)
    store_chunk(code_, byte_address(code_, address, static_cast<std::int64_t>(i) * part_bytes), parts[i]);
}

key_value_blocks::piece key_value_blocks::piece_of_round(std::int64_t round, std::int64_t pieces) {
  Value number = code_.add(group_.thread(), round * group_.threads());
  if ((round + 1) * group_.threads() <= pieces) return {number, {}};
  return {code_.min(number, pieces - 1), code_.less(number, code_.constant(pieces))};
}

void key_value_blocks::when_used(const piece& here, const std::function<void()>& body) {
  if (here.used) code_.when(here.used, body);
  else body();
}

Value key_value_blocks::limited(Value key) { return has_whole_blocks() ? key : code_.min(key, e_.size(p_.keys - 1)); }

Value key_value_blocks::fetch_key(const attention_problem::place& at, Value first_key, std::int64_t round) {
  piece here = piece_of_round(round, key_pieces());
  Value j = code_.add(first_key, code_.div(here.number, key_pitch_)),
        depth = code_.mul(code_.rem(here.number, key_pitch_), chunk), inside;
  if (key_pitch_ * chunk != p_.n.depth)
    inside = code_.less(depth, code_.constant(p_.n.depth)), depth = code_.min(depth, p_.n.depth - chunk);
  return chunk_of(e_, p_.key, p_.of_key(at, limited(j), depth, chunk, chunk), inside);
}

// A piece is 8 keys (in the order of lane_layout::key) by some depths. Neighbouring threads load neighbouring depths.
values key_value_blocks::fetch_values(const attention_problem::place& at, Value first_key, std::int64_t round) {
  values result;
  piece here = piece_of_round(round, value_pieces());
  Value column = code_.div(here.number, value_depth_ / piece_depths_),
        depth = code_.mul(code_.rem(here.number, value_depth_ / piece_depths_), piece_depths_), inside;
  Value base =
      code_.add(first_key, code_.add(code_.mul(code_.div(column, lanes_.lane_groups), lanes_.group_keys),
                                     code_.mul(code_.rem(column, lanes_.lane_groups), lanes_.key_of_lane_group)));
  if (value_depth_ != p_.n.value_depth)
    inside = code_.less(depth, code_.constant(p_.n.value_depth)),
    depth = code_.min(depth, p_.n.value_depth - piece_depths_);
  for (std::int64_t k = 0; k < chunk; ++k) {
    Value j = code_.add(base, lanes_.key(0, k));
    // Keys beyond the last one have the weight 0, and what is read for them is the last one. An open number of keys
    // cannot tell the compiler that there are none in a whole block, so that the comparison would stay in all of them.
    const bool compares = !divides(key_block_, p_.keys) && !p_.is_open();
    Value seen = compares ? both(code_, inside, code_.less(j, e_.size(p_.keys))) : inside;
    result.push_back(
        chunk_of(e_, p_.value_, p_.of_value(at, limited(j), depth, piece_depths_, piece_depths_), seen, piece_depths_));
  }
  return result;
}

void key_value_blocks::store_key(std::int64_t round, Value fetched) {
  piece here = piece_of_round(round, key_pieces());
  Value row = code_.div(here.number, key_pitch_), column = code_.rem(here.number, key_pitch_);
  Value place = code_.add(code_.mul(row, key_pitch_), bit_xor(code_, column, swizzle(code_, row, key_pitch_)));
  when_used(here, [&] { store_parts(keys_, key_bytes(), place, fetched); });
}

void key_value_blocks::store_values(std::int64_t round, std::span<const Value> fetched) {
  piece here = piece_of_round(round, value_pieces());
  const std::int64_t pieces_of_chunk = chunk / piece_depths_;
  Value column = code_.div(here.number, value_depth_ / piece_depths_),
        depth_piece = code_.rem(here.number, value_depth_ / piece_depths_),
        depth_chunk = code_.div(depth_piece, pieces_of_chunk);
  Value base = code_.add(code_.mul(code_.div(depth_chunk, lanes_.lane_groups), lanes_.group_keys),
                         code_.mul(code_.rem(depth_chunk, lanes_.lane_groups), lanes_.key_of_lane_group));
  // key(0, e) is a sum over the bits of e.
  for (std::int64_t bit = 1; bit < pieces_of_chunk; bit *= 2)
    base = code_.add(base, code_.mul(code_.rem(code_.div(depth_piece, bit), 2), lanes_.key(0, bit * piece_depths_)));
  when_used(here, [&] {
    values of_depths = transposed(code_, fetched, type_, piece_depths_);
    for (std::int64_t d = 0; d < piece_depths_; ++d) {
      Value row = code_.add(base, lanes_.key(0, d));
      Value place = code_.add(code_.mul(row, key_block_ / chunk),
                              bit_xor(code_, column, swizzle(code_, row, key_block_ / chunk)));
      store_parts(values_, value_bytes(), place, of_depths[static_cast<std::size_t>(d)]);
    }
  });
}

void key_value_blocks::fetch_keys(const attention_problem::place& at, Value first_key) {
  fetched_keys_.clear();
  for (std::int64_t i = 0; i < rounds(key_pieces()); ++i) fetched_keys_.push_back(fetch_key(at, first_key, i));
}

void key_value_blocks::fetch_all_values(const attention_problem::place& at, Value first_key) {
  fetched_values_.clear();
  for (std::int64_t i = 0; i < rounds(value_pieces()); ++i)
    for (Value v : fetch_values(at, first_key, i)) fetched_values_.push_back(v);
}

void key_value_blocks::store_keys() {
  for (std::int64_t i = 0; i < rounds(key_pieces()); ++i) store_key(i, fetched_keys_[static_cast<std::size_t>(i)]);
}

void key_value_blocks::store_all_values() {
  for (std::int64_t i = 0; i < rounds(value_pieces()); ++i)
    store_values(i, std::span(fetched_values_).subspan(static_cast<std::size_t>(i * chunk), chunk));
}

Value key_value_blocks::begin_of(Value first_key) {
  return has_whole_blocks() ? code_.min(first_key, p_.n.keys - key_block_) : first_key;
}

void key_value_blocks::fetch(const attention_problem::place& at, Value first_key) {
  first_key = begin_of(first_key);
  fetch_keys(at, first_key);
  fetch_all_values(at, first_key);
}

void key_value_blocks::store() {
  store_keys();
  store_all_values();
}

void key_value_blocks::load(const attention_problem::place& at, Value first_key, bool apart) {
  if (!apart) return fetch(at, first_key), store();
  first_key = begin_of(first_key);
  fetch_keys(at, first_key);
  store_keys();
  schedule_barrier(code_, e_.target.family, passing::nothing);
  fetch_all_values(at, first_key);
  store_all_values();
}

void key_value_blocks::move(const attention_problem::place& at, Value first_key, Value memory) {
  // Every block that is moved exists.
  keys_ = memory, values_ = byte_address(code_, memory, parts_of(type_) * key_bytes());
  for (std::int64_t i = 0; i < rounds(key_pieces()); ++i) store_key(i, fetch_key(at, first_key, i));
  for (std::int64_t i = 0; i < rounds(value_pieces()); ++i) store_values(i, fetch_values(at, first_key, i));
}

void key_value_blocks::copy(Value from, Value to, std::int64_t bytes) {
  const std::int64_t chunks = bytes / chunk_bytes;
  mlir::Type i32 = code_.builder.getI32Type();
  for (std::int64_t i = 0; i < rounds(chunks); ++i) {
    piece here = piece_of_round(i, chunks);
    Value offset = code_.mul(here.number, chunk_bytes);
    when_used(here, [&] {
      call_intrinsic(
          code_, "llvm.nvvm.cp.async.cg.shared.global.16.s", {},
          {byte_address(code_, to, offset), byte_address(code_, from, offset), code_.integer(i32, chunk_bytes)});
    });
  }
  call_intrinsic(code_, "llvm.nvvm.cp.async.commit.group", {});
}

void key_value_blocks::copy_values(Value block) {
  copy(byte_address(code_, block, parts_of(type_) * key_bytes()), values_, parts_of(type_) * value_bytes());
}

std::vector<fragment> key_value_blocks::read(Value memory, std::int64_t part_bytes, const factor_map& map,
                                             std::int64_t first, std::int64_t pitch, std::int64_t g) {
  Value row = code_.rem(code_.div(group_.lane(), map.row_divisor), map.row_modulus);
  Value swizzled = swizzle(code_, row, pitch);
  std::vector<fragment> result(static_cast<std::size_t>(parts_of(type_)));
  for (std::int64_t part = 0; part < map.parts; ++part)
    for (std::int64_t c = 0; c < (map.whole_row ? map.chunks : 1); ++c) {
      Value number =
          map.whole_row ? code_.constant(g * map.chunks + c)
                        : code_.add(code_.rem(code_.div(group_.lane(), map.chunk_divisor), map.chunks), g * map.chunks);
      Value place = code_.add(code_.mul(row, pitch), bit_xor(code_, number, swizzled));
      Value address = byte_address(code_, memory, code_.mul(place, chunk_bytes));
      for (std::size_t i = 0; i < result.size(); ++i)
        result[i].chunks.push_back(load_chunk(code_, byte_address(code_, address,
                                                                  (first + part * map.part_rows) * pitch * chunk_bytes +
                                                                      static_cast<std::int64_t>(i) * part_bytes)));
    }
  return result;
}

}  // namespace kiln::gpu
