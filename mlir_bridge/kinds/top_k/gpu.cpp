// top_k by counting: the position of an element in the result is the number of elements before it, so every element
// finds its own position. Equal elements are ordered by index; the result is deterministic. Long rows are divided into
// chunks, whose best elements are the candidates of the next stage. "chunk" (elements) and "at_once" (candidates that
// are not divided further) of the configuration overrule the choice. On NVIDIA GPUs the lanes of a wave share the
// counting for some elements; elsewhere each thread counts for one.
#include <algorithm>
#include <array>
#include <numeric>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"
#include "mlir_bridge/kinds/top_k/generators.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

// Candidates that are all compared with each other.
constexpr std::int64_t one_chunk = 16384, one_chunk_of_waves = 4096;
constexpr std::int64_t chunk_size = 4096, chunk_size_of_waves = 1024;
// Elements for which a wave counts, and keys that a lane loads before it compares.
constexpr std::int64_t elements_of_wave = 4, keys_abreast = 4, threads_of_waves = 256;
// Sets of elements for each wave of a workgroup that computes keys, and shared memory for these.
constexpr std::int64_t teams_of_wave = 4, most_key_bytes = 1 << 15;
// Elements of a chunk of an open row, which is filled up to whole chunks.
constexpr std::int64_t open_chunk_size = 512;
// Assumed extent of an open axis, for sizing work items.
constexpr std::int64_t usual_extent = 128;

std::int64_t usual(const dim& size) { return size.is_static() ? size.value() : usual_extent; }

struct top_k_emitter {
  kernel_emitter& e;
  code_builder& code;
  const top_k& op;
  value input;
  element_type type, key_type;
  std::vector<dim> dims;
  std::size_t axis;
  dim rows;

  // Returns indices from the index of a row and the index `along` the axis.
  values place(Value row, Value along) const {
    std::vector<dim> others = dims;
    others[axis] = 1;
    values where = e.delinearize(row, others);
    where[axis] = along;
    return where;
  }

  // Returns an element of the input, with the precision of its type. It is computed for its key, and again if it is one
  // of the best.
  Value element(Value row, Value along) const {
    evaluator ev(e);
    const Value x = ev.element(input, place(row, along));
    return e.in_memory(input) ? x : convert_element(code, x, type, input.type().type);
  }

  // Converts elements to unsigned integers whose order is that of the result; the best is the largest. NaN is greater
  // than every number, and both zeros are equal.
  Value key(Value x) const {
    mlir::Type integer = code.scalar_type(key_type);
    unsigned bits = integer.getIntOrFloatBitWidth();
    auto number = [&](std::uint64_t v) {
      return code.integer(
          integer, bits == 32 ? static_cast<std::int64_t>(static_cast<std::int32_t>(v)) : static_cast<std::int64_t>(v));
    };
    const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
    Value k;
    if (is_float(type)) {
      k = code.make<arith::BitcastOp>(integer, x);
      k = code.select(code.equal(k, number(sign)), number(0), k);
      Value negative = code.less(k, number(0));
      k = code.make<arith::XOrIOp>(k, code.select(negative, number(~std::uint64_t{0}), number(sign)));
      k = code.select(code.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x), number(~std::uint64_t{0}), k);
    } else {
      k = convert_element(code, x, type,
                          is_signed_integer(type) ? (bits == 64 ? element_type::i64 : element_type::i32) : key_type);
      if (is_signed_integer(type)) k = code.make<arith::XOrIOp>(k, number(sign));
    }
    return op.largest ? k : code.make<arith::XOrIOp>(k, number(~std::uint64_t{0})).getResult();
  }

  struct candidates {
    // [rows, count]; without it, these are the elements of the input, whose keys each workgroup computes for its chunk.
    std::optional<buffer> keys;
    // Indices in the row of the input; without them, each key's own position.
    std::optional<buffer> indices;
    dim count;
  };

  // The keys of a row, and up to `count` the worst key, which comes after all elements of the row.
  candidates make_keys(const dim& count) const {
    const dim& extent = dims[axis];
    candidates result{e.add_open_scratch(key_type, {rows, count}), {}, count};
    e.parallel_open("top_k_keys", {rows, count}, 1, [&](std::span<const Value> at) {
      const bool filled = count != extent;
      Value k = key(element(at[0], filled ? e.min(at[1], extent - 1) : at[1]));
      if (filled) k = code.select(code.less(at[1], e.size(extent)), k, code.integer(k.getType(), 0));
      code.store(e.pointer(*result.keys), code.add(e.mul(at[0], count), at[1]), key_type, k);
    });
    return result;
  }

  // How a row of candidates is divided: chunks of `whole` elements, the first `longer` of which have one more.
  struct division {
    dim chunks, whole;
    std::int64_t longer = 0;
  };

  // found(row, chunk, place among the best of the chunk, index in the input's row, key)
  using writer = std::function<void(Value, Value, Value, Value, Value)>;
  bool shares_counting() const { return e.target.family == target_family::nvidia; }
  void rank(const candidates& from, const division& by, const writer& found) const {
    if (shares_counting()) return rank_by_waves(from, by, found);
    const std::int64_t longer = by.longer;
    const dim most = by.whole + (longer ? 1 : 0);
    e.parallel_open("top_k_rank", {rows, by.chunks, most}, usual(most), [&](std::span<const Value> at) {
      Value begin = code.add(e.mul(at[1], by.whole), code.min(at[1], longer)), size = e.size(by.whole);
      if (longer)
        size = code.add(size, code.select(code.less(at[1], code.constant(longer)), code.constant(1), code.constant(0)));
      code.when(code.less(at[2], size), [&] {
        Value keys = e.pointer(*from.keys), base = e.mul(at[0], from.count), own = code.add(begin, at[2]);
        Value mine = code.load(keys, code.add(base, own), key_type, 1), one = code.constant(1), zero = code.constant(0);
        Value ahead = code.loop(begin, code.add(begin, size), 1, {zero}, [&](Value j, std::span<const Value> s) {
          Value other = code.load(keys, code.add(base, j), key_type, 1);
          Value first = code.make<arith::CmpIOp>(arith::CmpIPredicate::ugt, other, mine);
          Value tied = code.make<arith::AndIOp>(code.equal(other, mine), code.less(j, own));
          return values{code.add(s[0], code.select(code.make<arith::OrIOp>(first, tied).getResult(), one, zero))};
        })[0];
        code.when(code.less(ahead, code.constant(op.k)), [&] {
          Value index =
              from.indices ? code.load(e.pointer(*from.indices), code.add(base, own), code.index_element(), 1) : own;
          found(at[0], at[1], ahead, index, mine);
        });
      });
    });
  }

  // Whether workgroups compute the keys of their chunks themselves, in shared memory.
  bool keys_fit(const division& by) const {
    return shares_counting() && (by.whole.value() + 1) * storage_bits(key_type) / 8 <= most_key_bytes;
  }

  void rank_by_waves(const candidates& from, const division& by, const writer& found) const {
    const dim most = by.whole + (by.longer ? 1 : 0), teams = (most + (elements_of_wave - 1)) / elements_of_wave;
    const std::int64_t lanes = e.target.gpu.wave, waves = threads_of_waves / lanes,
                       of_group = from.keys ? waves : waves * teams_of_wave;
    const dim groups = (teams + (of_group - 1)) / of_group;
    workgroup group(e, "top_k_rank", rows * by.chunks * groups, threads_of_waves);
    const values at = e.delinearize(group.block(), std::array{rows, by.chunks, groups});
    Value begin = code.add(e.mul(at[1], by.whole), code.min(at[1], by.longer)), size = e.size(by.whole);
    Value one = code.constant(1), zero = code.constant(0), base = e.mul(at[0], from.count), keys;
    if (by.longer) size = code.add(size, code.select(code.less(at[1], code.constant(by.longer)), one, zero));
    if (from.keys) {
      keys = e.pointer(*from.keys);
    } else {
      keys = group.lds(most.value() * storage_bits(key_type) / 8);
      code.loop(group.thread(), size, threads_of_waves,
                [&](Value i) { code.store(keys, i, key_type, key(element(at[0], code.add(begin, i)))); });
      group.barrier();
      base = code.sub(zero, begin);
    }
    Value own_team = code.add(code.mul(at[2], of_group), group.wave()),
          end_team = e.min(code.add(code.mul(at[2], of_group), of_group), teams);
    code.loop(own_team, end_team, waves, [&](Value team) {
      Value first = code.mul(team, elements_of_wave);
      auto load_key = [&](Value j) { return code.load(keys, code.add(base, j), key_type, 1); };
      values own, mine;
      for (std::int64_t i = 0; i < elements_of_wave; ++i) {
        own.push_back(code.add(begin, code.min(code.add(first, i), code.sub(size, 1))));
        mine.push_back(load_key(own.back()));
      }
      auto counted = [&](Value j, Value other, values ahead) {
        for (std::size_t i = 0; i < own.size(); ++i) {
          Value better = code.make<arith::CmpIOp>(arith::CmpIPredicate::ugt, other, mine[i]);
          Value tied = code.make<arith::AndIOp>(code.equal(other, mine[i]), code.less(j, own[i]));
          ahead[i] = code.add(ahead[i], code.select(code.make<arith::OrIOp>(better, tied).getResult(), one, zero));
        }
        return ahead;
      };
      const std::int64_t step = lanes * keys_abreast;
      Value whole = code.add(begin, code.mul(code.div(size, step), step));
      values ahead = code.loop(code.add(begin, group.lane()), whole, step, values(own.size(), zero),
                               [&](Value j, std::span<const Value> now) {
                                 values result(now.begin(), now.end()), places, others;
                                 for (std::int64_t i = 0; i < keys_abreast; ++i) {
                                   places.push_back(code.add(j, i * lanes));
                                   others.push_back(load_key(places.back()));
                                 }
                                 for (std::size_t i = 0; i < others.size(); ++i)
                                   result = counted(places[i], others[i], std::move(result));
                                 return result;
                               });
      ahead = code.loop(
          code.add(whole, group.lane()), code.add(begin, size), lanes, std::move(ahead),
          [&](Value j, std::span<const Value> now) { return counted(j, load_key(j), values(now.begin(), now.end())); });
      ahead = group.reduce_wave(std::move(ahead), [&](std::span<const Value> a, std::span<const Value> b) {
        values sums;
        for (std::size_t i = 0; i < a.size(); ++i) sums.push_back(code.add(a[i], b[i]));
        return sums;
      });
      // Lane i writes element i.
      auto of_lane = [&](const values& from_all) {
        Value result = from_all[0];
        for (std::int64_t i = 1; i < elements_of_wave; ++i)
          result =
              code.select(code.equal(group.lane(), code.constant(i)), from_all[static_cast<std::size_t>(i)], result);
        return result;
      };
      Value rank = of_lane(ahead), place = of_lane(own), k = of_lane(mine);
      Value exists = code.make<arith::AndIOp>(code.less(group.lane(), code.constant(elements_of_wave)),
                                              code.less(code.add(first, group.lane()), size));
      code.when(code.make<arith::AndIOp>(exists, code.less(rank, code.constant(op.k))), [&] {
        Value index =
            from.indices ? code.load(e.pointer(*from.indices), code.add(base, place), code.index_element(), 1) : place;
        found(at[0], at[1], rank, index, k);
      });
    });
    group.close();
  }

  buffer result(std::uint32_t index) const {
    for (std::size_t i = 0; i < e.outputs().size(); ++i)
      if (e.outputs()[i] == e.anchor_result(index)) return e.output(i);
    value v = e.anchor_result(index);
    return e.add_open_scratch(v.type().type, kernel_emitter::sizes(v));
  }

  // The k best candidates of each chunk.
  candidates best_of_chunks(const candidates& from, const division& by) const {
    const dim count = by.chunks * op.k;
    candidates next{e.add_open_scratch(key_type, {rows, count}),
                    e.add_open_scratch(code.index_element(), {rows, count}), count};
    rank(from, by, [&](Value row, Value chunk, Value place, Value index, Value k) {
      Value at = code.add(e.mul(row, count), code.add(code.mul(chunk, op.k), place));
      code.store(e.pointer(*next.keys), at, key_type, k);
      code.store(e.pointer(*next.indices), at, code.index_element(), index);
    });
    return next;
  }

  candidates few_candidates() const {
    if (const dim& extent = dims[axis]; !extent.is_static()) {
      const std::int64_t size = std::max(open_chunk_size, 4 * op.k);
      const dim chunks = (extent + (size - 1)) / size;
      return best_of_chunks(make_keys(chunks * size), {chunks, size});
    }
    candidates from{{}, {}, dims[axis]};
    const std::int64_t size = std::max(
                           std::max<std::int64_t>(64, choose(e.configuration, "chunk",
                                                             shares_counting() ? chunk_size_of_waves : chunk_size)),
                           4 * op.k),
                       at_once = choose(e.configuration, "at_once", shares_counting() ? one_chunk_of_waves : one_chunk);
    while (from.count.value() > std::max(at_once, 2 * size)) {
      const std::int64_t count = from.count.value(), chunks = count / size;
      const division by{chunks, count / chunks, count % chunks};
      if (!from.keys && !keys_fit(by)) from = make_keys(dims[axis]);
      from = best_of_chunks(from, by);
    }
    if (!from.keys && !keys_fit({1, from.count})) from = make_keys(dims[axis]);
    return from;
  }

  void emit() const {
    const candidates from = few_candidates();
    buffer best = result(0), indices = result(1);
    rank(from, {1, from.count}, [&](Value row, Value, Value rank, Value index, Value) {
      Value x = element(row, index);
      const values where = place(row, rank);
      Value at = code.constant(0);
      for (std::size_t i = 0; i < where.size(); ++i) at = code.add(e.mul(at, best.sizes[i]), where[i]);
      code.store(e.pointer(best), at, best.type, x);
      code.store(e.pointer(indices), at, indices.type,
                 convert_element(code, index, code.index_element(), element_type::i64));
    });
  }
};

}  // namespace

std::vector<candidate> top_k_space(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<top_k>();
  value input = e.anchor()->inputs()[0];
  if (op.k == 0 || input.type().element_count() == 0) return {};
  const std::int64_t extent =
      kernel_emitter::dims(input)[static_cast<std::size_t>(normalize_axis(op.axis, input.type().rank()))];
  std::vector<candidate> result;
  for (std::int64_t chunk : {512, 1024, 2048, 4096, 8192})
    for (std::int64_t at_once : {2048, 4096, 8192, 16384, 32768}) {
      // All elements of a chunk are compared with each other; every stage costs a launch.
      constexpr double launch = 5000;
      const std::int64_t size = std::max(chunk, 4 * op.k);
      double cost = 0;
      std::int64_t count = extent;
      for (; count > std::max(at_once, 2 * size); count = count / size * op.k)
        cost += launch + static_cast<double>(count) * static_cast<double>(size);
      result.push_back(
          {{{"chunk", chunk}, {"at_once", at_once}}, cost + static_cast<double>(count) * static_cast<double>(count)});
    }
  return result;
}

void emit_top_k(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<top_k>();
  value input = e.anchor()->inputs()[0];
  const std::vector<dim>& dims = kernel_emitter::sizes(input);
  if (op.k == 0 || std::ranges::find(dims, dim(0)) != dims.end()) return;
  auto axis = static_cast<std::size_t>(normalize_axis(op.axis, dims.size()));
  element_type type = compute_type(input.type().type),
               key_type = storage_bits(type) == 64 ? element_type::u64 : element_type::u32;
  dim rows = 1;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (i != axis) rows = rows * dims[i];
  top_k_emitter{e, e.code, op, input, type, key_type, dims, axis, rows}.emit();
}

}  // namespace kiln::gpu
