#include "mlir_bridge/gpu/contraction/tile_loader.hpp"

#include "ir/error.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

tile_loader::tile_loader(kernel_emitter& e, workgroup& group, const operand& from, element_type factor,
                         std::int64_t rows, std::int64_t chunks, Value batch, Value first_row, bool beyond, bool shift)
    : e_(e),
      code_(e.code),
      from_(from),
      factor_(factor),
      rows_(rows),
      chunks_(chunks),
      batch_(batch),
      first_row_(first_row),
      beyond_(beyond),
      shift_(shift) {
  const std::int64_t total = rows * chunks, threads = std::min(group.threads(), total);
  // Threads beyond the last chunk repeat the work of other threads; they write the same bytes.
  Value thread = code_.rem(group.thread(), threads);
  if (group.threads() == threads) thread = group.thread();
  for (std::int64_t i = 0; i < (total + threads - 1) / threads; ++i) {
    place at;
    const std::int64_t inner = from.along_rows ? rows : chunks;
    Value fast, slow;
    if (threads % inner == 0) {
      fast = code_.rem(thread, inner), slow = code_.add(code_.div(thread, inner), i * (threads / inner));
    } else if (inner % threads == 0) {
      fast = code_.add(thread, i % (inner / threads) * threads), slow = code_.constant(i / (inner / threads));
    } else {
      Value linear = code_.min(code_.add(thread, i * threads), total - 1);
      fast = code_.rem(linear, inner), slow = code_.div(linear, inner);
    }
    at.row = from.along_rows ? fast : slow;
    at.chunk = from.along_rows ? slow : fast;
    at.bytes = code_.mul(code_.add(code_.mul(at.row, chunks), bit_xor(code_, at.chunk, swizzle(code_, at.row, chunks))),
                         chunk_bytes);
    places_.push_back(at);
  }
}

element_request tile_loader::request(const place& at, Value k_tile) const {
  const std::int64_t elements = elements_of_chunk(factor_);
  return {.batch = batch_,
          .row = code_.add(first_row_, at.row),
          .k_tile = k_tile,
          .k_inner = code_.mul(at.chunk, elements),
          .k_step = chunks_ * elements,
          .beyond = beyond_};
}

tile_loader::fetched tile_loader::fetch(Value k_tile) {
  evaluator ev(e_);
  fetched result;
  for (const place& at : places_) result.push_back(gather_chunk(e_, ev, from_, factor_, request(at, k_tile)));
  return result;
}

void tile_loader::store(const fetched& chunks, Value memory) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Value chunk = chunks[i].masked(code_);
    store_chunk(code_, byte_address(code_, memory, places_[i].bytes), shift_ ? shifted(code_, chunk) : chunk);
  }
}

void tile_loader::copy(Value k_tile, Value memory) {
  evaluator ev(e_);
  for (const place& at : places_) {
    auto source = place_of_chunk(e_, ev, from_, factor_, request(at, k_tile));
    if (!source)
      throw error(error_kind::internal, "kernel '" + e_.symbol + "' copies an operand that is not in memory as it is");
    Value to = byte_address(code_, memory, at.bytes);
    if (!source->inside) {
      call_intrinsic(code_, "llvm.nvvm.cp.async.cg.shared.global.16", {}, {to, source->address});
      continue;
    }
    mlir::Type i32 = code_.builder.getI32Type();
    Value bytes = code_.select(source->inside, code_.integer(i32, chunk_bytes), code_.integer(i32, 0));
    call_intrinsic(code_, "llvm.nvvm.cp.async.cg.shared.global.16.s", {}, {to, source->address, bytes});
  }
}

}  // namespace kiln::gpu
